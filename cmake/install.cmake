# Installation: the library, its headers and a package file, so that find_package(Treadle) gives Treadle::treadle.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS treadle EXPORT TreadleTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The component `text`: tokenizers, and what makes vectors of sentences with them.
if(TARGET treadle_text)
  set_target_properties(treadle_text PROPERTIES EXPORT_NAME text)
  install(TARGETS treadle_text EXPORT TreadleTextTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES io/text/tokenizer.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/treadle/io/text)
  install(FILES models/embedder.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/treadle/models)
endif()
# Not installed: what shows a type of a library that users need not have. The inside of the kernels is for
# treadle_add_model, which needs xsimd.
install(DIRECTORY graph ops passes backends models io DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/treadle
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h"
  PATTERN "ops/arrays.hpp" EXCLUDE PATTERN "io/case.hpp" EXCLUDE PATTERN "io/json.hpp" EXCLUDE
  PATTERN "io/npz.hpp" EXCLUDE PATTERN "io/text" EXCLUDE PATTERN "models/embedder.hpp" EXCLUDE PATTERN "models/config.hpp" EXCLUDE
  PATTERN "models/architecture.hpp" EXCLUDE PATTERN "models/bert_names.hpp" EXCLUDE
  PATTERN "models/transformer_names.hpp" EXCLUDE)
file(GLOB treadle_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/*.hpp)
install(FILES ${treadle_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/treadle)
install(DIRECTORY examples/data DESTINATION ${CMAKE_INSTALL_DATADIR}/treadle)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(treadle_package ${CMAKE_INSTALL_LIBDIR}/cmake/Treadle)
install(EXPORT TreadleTargets NAMESPACE Treadle:: DESTINATION ${treadle_package})
if(TARGET treadle_text)
  install(EXPORT TreadleTextTargets NAMESPACE Treadle:: DESTINATION ${treadle_package})
endif()
configure_package_config_file(cmake/TreadleConfig.cmake.in ${CMAKE_BINARY_DIR}/TreadleConfig.cmake
  INSTALL_DESTINATION ${treadle_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TreadleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TreadleConfig.cmake ${CMAKE_BINARY_DIR}/TreadleConfigVersion.cmake
  cmake/isa.cmake cmake/check_isa_object.cmake cmake/model.cmake cmake/model.cpp.in cmake/model.kernel.cpp.in
  DESTINATION ${treadle_package})
