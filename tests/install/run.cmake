# cmake -DBUILD=… -DSOURCE=… -DWORK=… -DCOMPILER=… [-DTOKENIZER=…] -P run.cmake: installs, then builds and runs a project that
# uses it.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
# Mistakes that must not get through, with a part of the sentence that each must give.
function(refused mistake sentence)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -DMISTAKE=${mistake}
                  RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  string(FIND "${text}" "${sentence}" at)
  if(code EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "${mistake}: '${sentence}' was expected, not: ${text}")
  endif()
endfunction()
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} -E chdir ${WORK}/build ./consumer)
if(TOKENIZER)
  run(${CMAKE_COMMAND} -E chdir ${WORK}/build ./text_consumer ${TOKENIZER})
endif()
refused(no_models "MODELS and the names of its models are missing")
refused(no_file "there is no file")
refused(no_target "there is no target 'nobody'")
file(REMOVE_RECURSE ${WORK})
