# Models compiled once per instruction set, with their score functions inlined into the attention kernel.
#
#   treadle_add_model(<target> <file> MODELS <Model>...)
#
# <file> holds model definitions only (`inline constexpr auto f = []{…}; struct M : treadle::Model<f> {};`); <target> may
# include it too and has to link Treadle::treadle. Every model of <target> with one of these score functions, static or
# made at run time, then finds the kernels when it is bound (treadle/backends/inlined.hpp). Kernels need xsimd's headers.
#
# A static library cannot register by itself, since a linker leaves out an object that nobody names: what links it
# compiles the few lines that register.

function(treadle_add_model target file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "MODELS")
  if(NOT TARGET ${target})
    message(FATAL_ERROR "treadle_add_model: there is no target '${target}'; add_executable or add_library comes first")
  endif()
  if(NOT arg_MODELS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "treadle_add_model(${target} ${file}): MODELS and the names of its models are missing, "
                        "such as: treadle_add_model(${target} ${file} MODELS my::Gpt)")
  endif()
  get_filename_component(path ${file} ABSOLUTE)
  if(NOT EXISTS ${path})
    message(FATAL_ERROR "treadle_add_model(${target} ${file}): there is no file ${path}")
  endif()

  # Names that no other file of the program has.
  file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR} ${path})
  string(MAKE_C_IDENTIFIER "models_${target}_${relative}" table)
  string(REGEX REPLACE "_+" "_" table ${table})
  list(JOIN arg_MODELS ", " models)
  set(kernels ${CMAKE_CURRENT_BINARY_DIR}/${table}.kernel.cpp)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/model.kernel.cpp.in ${kernels} @ONLY)
  treadle_add_isa_objects(${target} SOURCES ${kernels} TABLE ${table} ISAS isas MODEL)

  set(declarations "")
  set(addresses "")
  foreach(isa IN LISTS isas)
    string(APPEND declarations "extern const ModelTable ${table}_${isa};\n")
    list(APPEND addresses "&${table}_${isa}")
  endforeach()
  list(JOIN addresses ", " addresses)
  set(registration ${CMAKE_CURRENT_BINARY_DIR}/${table}.cpp)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/model.cpp.in ${registration} @ONLY)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_sources(${target} INTERFACE ${registration})
  else()
    target_sources(${target} PRIVATE ${registration})
  endif()
endfunction()
