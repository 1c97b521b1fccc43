# cmake -DPROGRAM=build/release/textbook -P examples/textbook/text.cmake: what the program prints on the portable ISA must
# be what expected.txt holds and what docs/textbook.md shows. With -DUPDATE=ON (before -P) both are written anew.
set(expected_file ${CMAKE_CURRENT_LIST_DIR}/expected.txt)
set(page_file ${CMAKE_CURRENT_LIST_DIR}/../../docs/textbook.md)
get_filename_component(PROGRAM "${PROGRAM}" ABSOLUTE)

execute_process(COMMAND ${PROGRAM} --backend simd --isa portable
  OUTPUT_VARIABLE printed ERROR_VARIABLE problem RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}: ${problem}\n${printed}")
endif()

# The page is prose, one block of text, and nothing after it.
file(READ ${page_file} page)
string(FIND "${page}" "```text\n" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "${page_file} has no block that begins with ```text")
endif()
string(SUBSTRING "${page}" 0 ${begin} prose)
set(wanted_page "${prose}```text\n${printed}```\n")

if(UPDATE)
  file(WRITE ${expected_file} "${printed}")
  file(WRITE ${page_file} "${wanted_page}")
  return()
endif()
file(READ ${expected_file} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\n--- ${expected_file} has\n${expected}")
endif()
if(NOT page STREQUAL wanted_page)
  message(FATAL_ERROR "${page_file} does not show what the program prints; run this script with -DUPDATE=ON")
endif()
