# Objects that are compiled once per instruction set.
#
#   treadle_add_isa_objects(<target> SOURCES <file.kernel.cpp> TABLE <name> [ISAS <variable>] [MODEL])
#
# compiles the source once for each ISA of TREADLE_ISAS with explicit feature flags and the definitions TREADLE_ISA_TAG=<isa>
# and TREADLE_ISA_TABLE=<name>_<isa>, and links the results into <target>. Each object is then closed: its COMDAT groups are
# resolved inside it and every symbol but treadle::kernel::<name>_<isa> becomes local. Otherwise the linker would merge
# inline functions of the standard library that were compiled with AVX-512 into code that runs on every CPU. ISAS gives
# back which were made; MODEL is for files of users (model.cmake), which see what <target> sees.
#
# Sanitizers need those symbols global, so such a build links one ISA, TREADLE_SANITIZE_ISA, as the compiler leaves it.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TREADLE_ISAS "portable;avx2;avx512" CACHE STRING "Instruction sets to compile kernels for")
  set(TREADLE_SANITIZE_ISA "avx2" CACHE STRING "The one instruction set of a sanitizer build")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(TREADLE_ISAS "portable;neon64" CACHE STRING "Instruction sets to compile kernels for")
  set(TREADLE_SANITIZE_ISA "portable" CACHE STRING "The one instruction set of a sanitizer build")
else()
  set(TREADLE_ISAS "portable" CACHE STRING "Instruction sets to compile kernels for")
  set(TREADLE_SANITIZE_ISA "portable" CACHE STRING "The one instruction set of a sanitizer build")
endif()

function(treadle_add_isa_objects target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MODEL" "TABLE;ISAS" "SOURCES")
  # xsimd is headers only: Debian's package has a config file, other installations may have the headers alone.
  find_path(TREADLE_XSIMD_INCLUDE xsimd/xsimd.hpp REQUIRED)
  # Set here, since a project may find the package in one folder and use it in another.
  set(treadle_isa_flags_portable "")
  set(treadle_isa_flags_avx2 -mavx2 -mfma)
  set(treadle_isa_flags_avx512 -mavx2 -mfma -mavx512f -mavx512cd -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  set(treadle_isa_flags_neon64 "")
  set(check ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_isa_object.cmake)
  set(isas ${TREADLE_ISAS})
  set(sanitized FALSE)
  if(TREADLE_SANITIZE OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(sanitized TRUE)
    set(isas ${TREADLE_SANITIZE_ISA})
  endif()

  foreach(isa IN LISTS isas)
    if(NOT DEFINED treadle_isa_flags_${isa})
      message(FATAL_ERROR "TREADLE_ISAS: no such instruction set: ${isa}")
    endif()
    string(TOUPPER ${isa} upper)
    set(objects ${target}_${arg_TABLE}_${isa})
    add_library(${objects} OBJECT ${arg_SOURCES})
    set_target_properties(${objects} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF POSITION_INDEPENDENT_CODE ON)
    target_compile_features(${objects} PRIVATE cxx_std_20)
    target_compile_definitions(${objects} PRIVATE TREADLE_ISA_TAG=${isa} TREADLE_ISA_TABLE=${arg_TABLE}_${isa})
    if(arg_MODEL)
      target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
      target_compile_definitions(${objects} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
      target_link_libraries(${objects} PRIVATE Treadle::treadle)
    else()
      target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
      target_compile_definitions(${target} PRIVATE TREADLE_ISA_${upper})
    endif()
    target_include_directories(${objects} SYSTEM PRIVATE ${TREADLE_XSIMD_INCLUDE})
    if(TARGET treadle_options)
      target_link_libraries(${objects} PRIVATE treadle_options)
    endif()
    # The numeric contract: nothing is fused but where fma is written.
    target_compile_options(${objects} PRIVATE ${treadle_isa_flags_${isa}} -ffp-contract=off -fno-math-errno -fno-lto
      # g++ 12 takes the undefined operands inside its own intrinsics for ours.
      $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique$<SEMICOLON>-Wno-uninitialized> $<$<CXX_COMPILER_ID:Clang>:-fno-addrsig>)

    if(sanitized)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
      continue()
    endif()

    set(closed ${CMAKE_CURRENT_BINARY_DIR}/${arg_TABLE}_${isa}.o)
    # _ZN7treadle6kernel<length><name>E: the table's name as the linker sees it.
    string(LENGTH "${arg_TABLE}_${isa}" length)
    set(symbol _ZN7treadle6kernel${length}${arg_TABLE}_${isa}E)
    add_custom_command(OUTPUT ${closed}
      COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${closed} $<TARGET_OBJECTS:${objects}>
      COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${symbol} ${closed}
      COMMAND ${CMAKE_COMMAND} -DOBJECT=${closed} -DSYMBOL=${symbol} -DISA=${isa} -DNM=${CMAKE_NM} -DOBJDUMP=${CMAKE_OBJDUMP}
              -P ${check}
      DEPENDS ${objects} $<TARGET_OBJECTS:${objects}> ${check}
      COMMAND_EXPAND_LISTS VERBATIM COMMENT "Closing the ${isa} kernels")
    add_custom_target(${objects}_closed DEPENDS ${closed})
    add_dependencies(${target} ${objects}_closed)
    set_source_files_properties(${closed} TARGET_DIRECTORY ${target} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_sources(${target} PRIVATE ${closed})
  endforeach()
  if(arg_ISAS)
    set(${arg_ISAS} ${isas} PARENT_SCOPE)
  endif()
endfunction()
