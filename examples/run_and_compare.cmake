# cmake -DPROGRAM= -DEXPECTED= -P run_and_compare.cmake: the program must end with 0 and print exactly what the file holds.
# One that ends with 77 lacks what it needs, and says how to get it.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed ERROR_VARIABLE problem RESULT_VARIABLE code)
if(code EQUAL 77 AND NOT problem STREQUAL "")
  message(STATUS "not run: ${problem}")
  return()
endif()
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}: ${problem}")
endif()
file(READ ${EXPECTED} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\n--- ${EXPECTED} has\n${expected}")
endif()
