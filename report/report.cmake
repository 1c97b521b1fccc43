# The page that `compare --html` and `explain --html` write: its files as text inside the program, so that nothing of the
# source tree is needed when it runs. Chart.js comes from Debian (libjs-chart.js); a program that was built without it
# looks for it when it writes a page.
set(files ${CMAKE_SOURCE_DIR}/report/page.html ${CMAKE_SOURCE_DIR}/report/page.css)
set(scripts)
foreach(name IN ITEMS page weights explain checkpoint compare)
  list(APPEND scripts ${CMAKE_SOURCE_DIR}/report/${name}.js)
endforeach()
find_file(TREADLE_CHART_JS NAMES chart.min.js Chart.min.js chart.umd.js
  PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH
  DOC "Chart.js as one file, such as Debian's libjs-chart.js has it")
if(NOT TREADLE_CHART_JS)
  message(STATUS "Chart.js was not found (Debian: libjs-chart.js): the pages of --html will look for it at run time")
endif()

set(embedded ${CMAKE_CURRENT_BINARY_DIR}/generated/page_files.cpp)
add_custom_command(OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DOUT=${embedded} -DHTML=${CMAKE_SOURCE_DIR}/report/page.html
          -DSTYLE=${CMAKE_SOURCE_DIR}/report/page.css "-DSCRIPTS=${scripts}" "-DCHARTS=${TREADLE_CHART_JS}"
          -P ${CMAKE_SOURCE_DIR}/report/embed.cmake
  DEPENDS ${files} ${scripts} ${CMAKE_SOURCE_DIR}/report/embed.cmake VERBATIM)
target_sources(treadle_cli PRIVATE ${embedded})
# Longer than the 65536 characters that every compiler must take; ours take it.
set_source_files_properties(${embedded} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
