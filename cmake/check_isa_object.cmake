# What must hold for a closed ISA object (isa.cmake); runs as its last build step, so a bad object never links.
#   cmake -DOBJECT= -DSYMBOL= -DISA= -DNM= -DOBJDUMP= -P check_isa_object.cmake

function(run output)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE problem RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${problem}")
  endif()
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

run(symbols ${NM} --defined-only --format=posix ${OBJECT})
string(REGEX MATCHALL "[^\n]+ [A-Za-z] [^\n]*" lines "${symbols}")
set(visible "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+) ([A-Zu-w]) ")
    list(APPEND visible "${CMAKE_MATCH_1}")
  endif()
endforeach()
if(NOT visible STREQUAL SYMBOL)
  message(FATAL_ERROR "${OBJECT}: the only visible symbol should be ${SYMBOL}, found: ${visible}")
endif()

# Dynamic initialisers would run this ISA's instructions before anybody asked whether the CPU has them.
run(headers ${OBJDUMP} -h ${OBJECT})
if(headers MATCHES "[.](init_array|ctors|preinit_array)[^\n]*")
  message(FATAL_ERROR "${OBJECT}: has dynamic initialisers (${CMAKE_MATCH_0})")
endif()

if(ISA MATCHES "avx")
  run(code ${OBJDUMP} -d --no-show-raw-insn ${OBJECT})
  string(REGEX MATCHALL "vfn?madd" fused "${code}")
  list(LENGTH fused count)
  if(count EQUAL 0)
    message(FATAL_ERROR "${OBJECT}: not one fused multiply-add")
  endif()
endif()
