// Calls the JSON protocol of the wasm build: node test.mjs FILE.wasm
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const bytes = await readFile(process.argv[2]);
// No imports: it needs no clock, no thread, no entropy.
const { instance } = await WebAssembly.instantiate(bytes, {});
const wasm = instance.exports;

function call(name, request) {
  const input = new TextEncoder().encode(JSON.stringify(request));
  const address = wasm.alloc(input.length);
  new Uint8Array(wasm.memory.buffer).set(input, address);
  const ok = wasm[name](address, input.length);
  wasm.free(address, input.length);
  const output = new Uint8Array(wasm.memory.buffer, wasm.response_address(), wasm.response_length());
  const text = new TextDecoder().decode(output);
  return ok ? JSON.parse(text) : { error: text };
}

const parameters = { version: "v2", tau: 1.5 };
let state = call("init", parameters);
assert.deepEqual(state, { state_mu: 3, state_steps: 0 });

const row = { logits: [2, null, 2, "-inf"], uniform: 0.75 };
const response = call("step", { ...parameters, ...state, ...row });
const { token, kept_tokens, probability, surprise_bits, mu_after, state_steps } = response;
assert.deepEqual([token, kept_tokens, probability, surprise_bits, state_steps], [2, 2, 0.5, 1, 1]);
assert.equal(mu_after, 3 - 0.1 * (1 - 1.5));
assert.equal(response.state_mu, mu_after);

// A row that is long enough for the kernels, by a rule that the test can check.
const long = Array.from({ length: 3000 }, (_, i) => ((i * 7919) % 3000) / 300);
const best = long.indexOf(Math.max(...long));
assert.equal(call("step", { ...parameters, ...state, logits: long, uniform: 0 }).token, best);

const bad = call("step", { ...parameters, ...state, ...row, uniform: 1 });
assert.match(bad.error, /^uniform: the draw must be in \[0, 1\)/);
console.log("JSON protocol in wasm: ok");
