# Shared by ./compare and ./check: packages and builds. Sourced, not run.

say() { printf '== %s\n' "$*" >&2; }

# Packages that every build needs; a compiler and git are expected.
build_packages=(g++ binutils cmake ninja-build libxtensor-dev libxsimd-dev libtbb-dev libboost-test-dev libbenchmark-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev)
# What only the checks need.
check_packages=(clang-format-19 python3)
full_packages=(clang-19 clang-tidy-19 ccache)

# Installs what is missing of the named Debian packages: as root, or through sudo; otherwise says the line to run.
install_packages() {
  local missing=()
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo)
    else
      printf 'These Debian packages are missing; run this line, then try again:\n  apt-get update && apt-get install -y %s\n' \
        "${missing[*]}" >&2
      exit 2
    fi
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq || { say 'apt-get update failed'; exit 2; }
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    { say "apt-get could not install: ${missing[*]}"; exit 2; }
}

# A cmake of 3.25 or later: the one on PATH, or Debian's where another one stands in front of it.
find_cmake() {
  local c
  for c in cmake /usr/bin/cmake; do
    if "$c" --version 2>/dev/null | head -n 1 | grep -qE ' (3\.(2[5-9]|[3-9][0-9])|[4-9])'; then
      printf '%s' "$c"
      return 0
    fi
  done
  say 'no cmake of version 3.25 or later'
  exit 2
}

# build PRESET [TARGET…]: configures once and builds, with progress.
build() {
  local preset=$1 cmake
  shift
  cmake=$(find_cmake)
  "$cmake" --preset "$preset" -Wno-dev >"build/$preset.configure.log" 2>&1 ||
    { cat "build/$preset.configure.log" >&2; say "cmake --preset $preset failed"; return 1; }
  if [ $# -gt 0 ]; then
    "$cmake" --build "build/$preset" --target "$@"
  else
    "$cmake" --build "build/$preset"
  fi
}
