# Options of our own code: warnings are errors, and the numeric contract (fuse only where fma is written).
add_library(treadle_options INTERFACE)
target_compile_options(treadle_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror -ffp-contract=off -fno-math-errno)
# g++ 12 and 14 warn falsely in libstdc++ when they inline vectors.
target_compile_options(treadle_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overread -Wno-free-nonheap-object>)

# g++ 13 and later take a view that is a temporary for the owner of what it shows.
target_compile_options(treadle_options INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>)

# Sanitizers, for example "address,undefined" or "thread": one ISA is built then, and linked as it is.
set(TREADLE_SANITIZE "" CACHE STRING "Comma-separated sanitizers for every object")
if(TREADLE_SANITIZE)
  string(REPLACE ";" "," TREADLE_SANITIZE "${TREADLE_SANITIZE}")
  add_compile_options(-fsanitize=${TREADLE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TREADLE_SANITIZE})
endif()

# How much the compiler may compute while it builds and optimises a model (g++ stops at 2^25 operations, clang at 2^20).
set(TREADLE_CONSTEXPR_GNU -fconstexpr-ops-limit=2000000000 -fconstexpr-loop-limit=100000000)
set(TREADLE_CONSTEXPR_CLANG -fconstexpr-steps=2000000000)
