# What `make install` puts where. The shared library holds ggml; the static one needs ggml's archives, which are installed
# beside it in lib/qkv so that `pkg-config --static --libs qkv` is complete.
install(TARGETS qkv_shared EXPORT qkv LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS qkv_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${QKV_PUBLIC_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/qkv)
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/qkv FILES_MATCHING PATTERN "*.gguf")
install(DIRECTORY recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/qkv)
if(TARGET qkv)
    install(TARGETS qkv RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
    install(FILES ${PROJECT_BINARY_DIR}/completions/qkv DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${PROJECT_BINARY_DIR}/completions/_qkv DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${PROJECT_BINARY_DIR}/completions/qkv.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

get_filename_component(ggml_prefix "${ggml_DIR}/../../.." ABSOLUTE)
file(GLOB ggml_archives "${ggml_prefix}/lib/libggml*.a")
set(QKV_PC_PRIVATE "")
if(ggml_archives)
    install(FILES ${ggml_archives} DESTINATION ${CMAKE_INSTALL_LIBDIR}/qkv)
    set(QKV_PC_PRIVATE "-L\${libdir}/qkv ")
endif()
# The registry first, then the backends that it was built with, then what all need.
set(ggml_backends "-lggml-cpu")
foreach(archive ${ggml_archives})
    get_filename_component(name ${archive} NAME_WE)
    if(NOT name MATCHES "^libggml(-cpu|-base)?$")
        string(REPLACE "lib" " -l" name ${name})
        string(APPEND ggml_backends ${name})
    endif()
endforeach()
string(APPEND QKV_PC_PRIVATE "-lggml ${ggml_backends} -lggml-base")
# Not Requires.private: pkg-config would want the packages' headers, and give their include paths to everybody.
foreach(package PANGO JANSSON PCRE2 UTF8PROC XXHASH SQLITE CURL CRYPTO MICROHTTPD)
    string(REPLACE ";" " " flags "${${package}_LDFLAGS}")
    string(APPEND QKV_PC_PRIVATE " ${flags}")
endforeach()
string(APPEND QKV_PC_PRIVATE " -lopenblas -lgomp -lstdc++ -lm -lpthread -ldl")
# clang's OpenMP is another than that of ggml and OpenBLAS, and only its own flag finds it.
if(NOT "gomp" IN_LIST OpenMP_C_LIB_NAMES)
    string(APPEND QKV_PC_PRIVATE " ${OpenMP_C_FLAGS}")
endif()
# Relative to where it lies, so that an installed tree can be moved or staged with DESTDIR.
set(pc_directory ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH QKV_PC_PREFIX ${pc_directory} ${CMAKE_INSTALL_PREFIX})
# Which processors the library runs on: the one that it was built on, or any of its architecture.
if(QKV_NATIVE)
    set(QKV_PC_PROCESSOR native)
else()
    set(QKV_PC_PROCESSOR any)
endif()
configure_file(cmake/qkv.pc.in ${PROJECT_BINARY_DIR}/qkv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/qkv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# find_package(qkv): the target qkv::qkv is the shared library, which needs nothing else at link time.
include(CMakePackageConfigHelpers)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
install(EXPORT qkv NAMESPACE qkv:: FILE qkvConfig.cmake DESTINATION ${package_directory})
set_target_properties(qkv_shared PROPERTIES EXPORT_NAME qkv)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake DESTINATION ${package_directory})

# What shells, compilers and programs need to find what lies below a prefix of one's own.
install(CODE "set(lib \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")")
install(CODE [[
if(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$")
    message(STATUS "programs find libqkv after 'ldconfig', as root")
else()
    message(STATUS "programs and compilers find it with:
   export PATH=${CMAKE_INSTALL_PREFIX}/bin:$PATH
   export PKG_CONFIG_PATH=${lib}/pkgconfig
   cc prog.c $(pkg-config --cflags --libs qkv) -Wl,-rpath,${lib} -o prog")
endif()
]])
