#!/usr/bin/env bash
# out_of_tree_test.sh BUILD TORCH_CMAKE: installs the build, builds the project of out_of_tree/ against it and
# trains with its hook; then again with the installation moved to another place.
set -euo pipefail
build="$1" torch="$2"
project="$(cd "$(dirname "$0")" && pwd)/out_of_tree"
tmp="$(mktemp -d "${TMPDIR:-/tmp}/gantry-out-of-tree-XXXXXX")"
trap 'rm -rf "$tmp"' EXIT
# Nothing of the build tree or the user's own plugins may help.
export GANTRY_PLUGIN_PATH='' XDG_DATA_HOME="$tmp/none"

fail() { echo "FAILED: $*" >&2; exit 1; }
quietly() { "$@" >"$tmp/output.txt" 2>&1 || { cat "$tmp/output.txt" >&2; fail "$*"; }; }
# train PREFIX [ARGUMENTS...]: runs the installed program with the hook and looks for what it logs.
train() {
  mkdir "$tmp/run"
  (cd "$tmp/run" && quietly "$1/bin/gantry" run "$project/train.yaml" "${@:2}")
  grep -E '\[20/20\].* grad_norm [0-9]' "$tmp/output.txt" ||
    { cat "$tmp/output.txt" >&2; fail "no grad_norm in the log"; }
  rm -r "$tmp/run"
}

quietly cmake --install "$build" --prefix "$tmp/prefix"
for file in bin/gantry lib/libgantry_sdk.so.1 lib/gantry/plugins/gantry-sgd.so include/gantry/gantry.h \
            include/gantry/version.h lib/cmake/Gantry/GantryConfig.cmake; do
  [[ -e "$tmp/prefix/$file" ]] || fail "$file is not installed"
done
! ls "$tmp/prefix/lib/gantry/plugins" | grep '^test-' || fail "plugins of the tests are installed"

echo "--- configure and build the project against the installation"
quietly cmake -S "$project" -B "$tmp/plugin" -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$tmp/prefix;$torch"
start=$(date +%s.%N)
quietly cmake --build "$tmp/plugin" -j 1
echo "the hook compiled and linked in $(awk "BEGIN {printf \"%.1f\", $(date +%s.%N) - $start}") s"

echo "--- train"
train "$tmp/prefix" --plugin-dir "$tmp/plugin"

echo "--- install the plugin and train without --plugin-dir"
quietly cmake --install "$tmp/plugin"
train "$tmp/prefix"
rm "$tmp/prefix/lib/gantry/plugins/acme-gradnorm.so"

echo "--- move the installation and train again"
mkdir "$tmp/elsewhere"
mv "$tmp/prefix" "$tmp/elsewhere/gantry"
train "$tmp/elsewhere/gantry" --plugin-dir "$tmp/plugin"
grep -q "$tmp/prefix" "$tmp/elsewhere/gantry/lib/cmake/Gantry/"*.cmake && fail "the CMake files hold the first place"

echo "--- another LibTorch is refused"
mkdir -p "$tmp/torch"
echo 'set(Torch_FOUND TRUE)' >"$tmp/torch/TorchConfig.cmake"
cat >"$tmp/torch/TorchConfigVersion.cmake" <<'EOF'
set(PACKAGE_VERSION 2.99.0)
set(PACKAGE_VERSION_COMPATIBLE TRUE)
EOF
if cmake -S "$project" -B "$tmp/refused" -G Ninja -DCMAKE_PREFIX_PATH="$tmp/elsewhere/gantry" \
    -DTorch_DIR="$tmp/torch" >"$tmp/output.txt" 2>&1; then
  fail "LibTorch 2.99.0 was accepted"
fi
tr -s ' \n' ' ' <"$tmp/output.txt" |
  grep -oE 'This Gantry was built with LibTorch [0-9.]+, but find_package\(Torch\) found 2\.99\.0' ||
  { cat "$tmp/output.txt" >&2; fail "the refusal does not name both versions"; }
echo done
