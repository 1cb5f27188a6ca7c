#!/usr/bin/env bash
# Cross-compile and RUN Rust tests on an x86-64 Debian 12 machine, from Debian's and crates.io's packages only:
#   .ci/cross.sh a64          aarch64-unknown-linux-gnu under qemu-user
#   .ci/cross.sh wasm         wasm32-wasip1 (std, libtest) under node
#   .ci/cross.sh wasm-none    wasm32-unknown-unknown (std), for builds without a system
# Several may be named; none named = all. Idempotent. Afterwards, with DEBWEB=/opt/rust-web or your own:
#   . $DEBWEB/env.sh
#   cargo +debweb test --release --target aarch64-unknown-linux-gnu
#   cargo +debweb test --release --no-default-features --target wasm32-wasip1
# QEMU_CPU=NAME chooses the emulated aarch64 CPU: cortex-a53 has no fp16, for example; unset, it has everything that
# qemu knows. The wasm runner hands on the variables that start with RUST_, PROPTEST_ and SORTLESS_.
#
# rustup's own toolchains and dpkg's architectures are left alone: Debian's rustc lies under $DEBWEB and is linked into
# rustup as +debweb. Give it a target directory of its own, or it and the other toolchains rebuild each other's work.
set -euo pipefail
DEBWEB=${DEBWEB:-/opt/rust-web}
parts=("$@"); [ ${#parts[@]} -gt 0 ] || parts=(a64 wasm wasm-none)
want() { local p; for p in "${parts[@]}"; do [ "$p" = "$1" ] && return 0; done; return 1; }
for p in "${parts[@]}"; do case $p in a64|wasm|wasm-none) ;; *) echo "unknown part: $p" >&2; exit 2 ;; esac; done
say() { printf 'cross: %s\n' "$*"; }
apt_q() { apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -qq "$@"; }
have() { command -v "$1" > /dev/null; }

done_already() {
    [ -e "$DEBWEB/.done-$1" ] || return 1
    [ "$1" != a64 ] || { have qemu-aarch64 && have aarch64-linux-gnu-gcc; }
}

mkdir -p "$DEBWEB"
exec 9> "$DEBWEB/.lock"
flock 9 # two checkouts on one machine must not set it up at the same time

todo=()
for p in "${parts[@]}"; do done_already "$p" || todo+=("$p"); done
if [ ${#todo[@]} -eq 0 ]; then
    say "nothing to install"
else
    parts=("${todo[@]}")
    export DEBIAN_FRONTEND=noninteractive
    w=$(mktemp -d); trap 'rm -rf "$w"' EXIT
    chmod 755 "$w"
    # --- a private apt state that also knows arm64 (dpkg's own list of architectures stays as it is)
    mkdir -p "$w"/lists/partial "$w"/cache/archives/partial "$w"/deb
    src=/etc/apt/sources.list.d/debian.sources; [ -e "$src" ] || src=/etc/apt/sources.list
    cat > "$w/apt.conf" <<CONF
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
Dir::State::lists "$w/lists";
Dir::Cache "$w/cache";
Dir::Etc::sourcelist "$src";
Dir::Etc::sourceparts "-";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
    papt() { local c=$1; shift; APT_CONFIG="$w/apt.conf" "apt-$c" "$@"; }
    papt get -qq update
    if [ -e "$DEBWEB/.version" ]; then ver=$(cat "$DEBWEB/.version")
    else ver=$(papt cache policy rustc-web | awk '/Candidate:/ { print $2 }'); fi
    say "rustc-web $ver"

    # --- ordinary Debian packages of this machine's own architecture
    apt_q update
    pk=(libgit2-1.5 libedit2 libxml2 libz3-4)
    want a64 && pk+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
    want wasm && ! have node && pk+=(nodejs)
    apt_q install -y --no-install-recommends "${pk[@]}" > "$w/apt.log" 2>&1 || { cat "$w/apt.log"; exit 1; }

    get() { (cd "$w/deb" && papt get -qq download "$@"); }
    if [ ! -e "$DEBWEB/.version" ]; then
        get rustc-web="$ver" cargo-web="$ver" libstd-rust-web-dev="$ver"
        llvm=$(papt cache depends --no-recommends --no-suggests "libstd-rust-web-${ver%.*+*}=$ver" | awk '/Depends: libllvm/ { print $2; exit }')
        get "libstd-rust-web-${ver%.*+*}=$ver" "$llvm"
        for d in "$w"/deb/*.deb; do dpkg -x "$d" "$DEBWEB"; done
        # rustup puts TOOLCHAIN/lib on LD_LIBRARY_PATH; Debian keeps the libraries one folder below
        (cd "$DEBWEB/usr/lib" && ln -sf x86_64-linux-gnu/*.so* .)
        echo "$ver" > "$DEBWEB/.version"
        rm -f "$w"/deb/*
    fi
    rustup toolchain link debweb "$DEBWEB/usr"
    cargo +debweb -V; rustc +debweb -V

    if want a64; then
        get libstd-rust-web-dev:arm64="$ver"
        dpkg -x "$w"/deb/libstd-rust-web-dev_*_arm64.deb "$DEBWEB"
        touch "$DEBWEB/.done-a64"
    fi

    if want wasm || want wasm-none; then
        get rust-web-src="$ver" wasi-libc
        s=${ver%%+*}
        dpkg --fsys-tarfile "$w"/deb/rust-web-src_*.deb | tar -x -C "$DEBWEB" "./usr/src/rustc-$s/library" ./usr/lib/rustlib/src
        mkstd() { # TARGET CRATES: std for TARGET, built once, laid where rustc looks for it
            local t=$1 crates=$2 lib="$DEBWEB/usr/lib/rustlib/$1/lib"
            mkdir -p "$w/$t/src" "$lib"
            printf '[package]\nname = "mkstd"\nversion = "0.0.0"\nedition = "2021"\n[profile.release]\ndebug = 0\n' > "$w/$t/Cargo.toml"
            echo '#![no_std]' > "$w/$t/src/lib.rs"
            (cd "$w/$t" && env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET CARGO_TARGET_DIR="$w/$t/target" \
                RUSTC_BOOTSTRAP=1 cargo +debweb build -q --release --target "$t" -Zbuild-std="$crates")
            rm -f "$lib"/*.rlib
            cp "$w/$t/target/$t/release/deps/"lib*.rlib "$lib/"
            rm -f "$lib"/libmkstd-*.rlib
        }
        if want wasm; then
            sc="$DEBWEB/usr/lib/rustlib/wasm32-wasip1/lib/self-contained"; mkdir -p "$sc" "$w/wasi"
            dpkg -x "$w"/deb/wasi-libc_*.deb "$w/wasi"
            cp "$w"/wasi/usr/lib/wasm32-wasi/{crt1-command.o,crt1-reactor.o,libc.a} "$sc/"
            # Debian 12's wasi-libc is of 2022 and lacks two stubs that std names (there are no threads here): EINVAL
            cat > "$w/stub.rs" <<'RS'
#![feature(no_core, lang_items)]
#![allow(internal_features)]
#![no_core]
#![crate_type = "lib"]
#[lang = "pointee_sized"] pub trait PointeeSized {}
#[lang = "meta_sized"] pub trait MetaSized: PointeeSized {}
#[lang = "sized"] pub trait Sized: MetaSized {}
#[lang = "copy"] pub trait Copy {}
impl Copy for i32 {}
#[no_mangle] pub extern "C" fn pthread_join(_t: i32, _r: i32) -> i32 { 28 }
#[no_mangle] pub extern "C" fn pthread_detach(_t: i32) -> i32 { 28 }
RS
            RUSTC_BOOTSTRAP=1 rustc +debweb --target wasm32-wasip1 -C panic=abort -O -C codegen-units=1 --emit=obj \
                -o "$sc/pthread_stub.o" "$w/stub.rs"
            mkstd wasm32-wasip1 std,panic_abort,test
            touch "$DEBWEB/.done-wasm"
        fi
        if want wasm-none; then mkstd wasm32-unknown-unknown std,panic_abort; touch "$DEBWEB/.done-wasm-none"; fi
    fi
fi

# --- what an earlier version of this script, or another rustup, may have left different: written every time
rustup toolchain link debweb "$DEBWEB/usr"
# rustup's own toolchain brings the linker for wasm; Debian's does not
ln -sfn "$(rustc +stable --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld" "$DEBWEB/rust-lld"

cat > "$DEBWEB/run-wasi.mjs" <<'JS'
// cargo's runner for wasm32-wasip1: node run-wasi.mjs PROGRAM.wasm [ARGS...]
import { WASI } from 'node:wasi';
import { readFile } from 'node:fs/promises';
const [, , prog, ...args] = process.argv;
const env = {};
for (const k of Object.keys(process.env)) {
  if (/^(RUST_|PROPTEST_|SORTLESS_|CARGO_MANIFEST_DIR$)/.test(k)) env[k] = process.env[k];
}
const preopens = { '.': process.cwd(), [process.cwd()]: process.cwd(), '/tmp': '/tmp' };
const wasi = new WASI({ version: 'preview1', args: [prog, ...args], env, preopens, returnOnExit: true });
const inst = await WebAssembly.instantiate(await WebAssembly.compile(await readFile(prog)), wasi.getImportObject());
process.exitCode = wasi.start(inst);
JS

cat > "$DEBWEB/env.sh" <<ENV
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export CARGO_TARGET_WASM32_WASIP1_LINKER=$DEBWEB/rust-lld
export CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $DEBWEB/run-wasi.mjs"
export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="-C target-feature=+simd128 -C link-arg=$DEBWEB/usr/lib/rustlib/wasm32-wasip1/lib/self-contained/pthread_stub.o"
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$DEBWEB/rust-lld
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-C target-feature=+simd128"
ENV
say "ready: . $DEBWEB/env.sh"
