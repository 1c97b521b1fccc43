# Writes the header with the commit; "unknown" outside a git checkout. Run with -DGIT -DSOURCE -DHEADER.
cmake_minimum_required(VERSION 3.25)
set(commit unknown)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND described)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\ninline constexpr char treadle_commit[] = \"@commit@\";\n" @ONLY)
