# cmake -DPROGRAM= -DEXPECTED= -P run_and_compare.cmake: the program must end with 0 and print exactly what the file holds.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed ERROR_VARIABLE problem RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}: ${problem}")
endif()
file(READ ${EXPECTED} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\n--- ${EXPECTED} has\n${expected}")
endif()
