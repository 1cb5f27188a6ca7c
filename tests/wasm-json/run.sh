#!/usr/bin/env bash
# Builds the JSON protocol for wasm32-unknown-unknown and calls it from node. CARGO names the cargo command, with a
# toolchain that has the target: CARGO="cargo +debweb" tests/wasm-json/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target=${CARGO_TARGET_DIR:-../../target}
read -r -a cargo <<< "${CARGO:-cargo}"
"${cargo[@]}" build --release --target wasm32-unknown-unknown --target-dir "$target/wasm-json"
node test.mjs "$target/wasm-json/wasm32-unknown-unknown/release/sortless_wasm_json.wasm"
