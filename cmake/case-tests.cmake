# One test for every case of a folder: files cases_*.EXT with functions case_NAME, run by run.EXT NAME.
#
#     qkv_case_tests(serve py ${QKV_PYTHON} TIMEOUT 600 ENVIRONMENT "QKV=$<TARGET_FILE:qkv>")
#
# makes the tests serve_NAME. What follows the program are properties of each test.
function(qkv_case_tests prefix extension program)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cases_*.${extension})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
    foreach(source ${sources})
        file(STRINGS ${source} lines REGEX "^(def|export async function) case_")
        foreach(line ${lines})
            string(REGEX REPLACE "^.* case_([a-z0-9_]+).*" "\\1" name "${line}")
            add_test(NAME ${prefix}_${name}
                     COMMAND ${program} ${CMAKE_CURRENT_SOURCE_DIR}/run.${extension} ${name})
            set_tests_properties(${prefix}_${name} PROPERTIES LABELS ${prefix} ${ARGN})
        endforeach()
    endforeach()
endfunction()
