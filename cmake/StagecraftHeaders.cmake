# Defines the target stagecraft_headers_alone, which compiles every header of a layer by itself.
# This shows a missing include that a batch of sources hides (stagecraft_compile_in_batches). The
# target is not part of `all`; tools/test --headers-alone builds it.

# stagecraft_headers_of(<name> <pch: none|tensors> FOLDERS ... LIBS ...)
function(stagecraft_headers_of name pch)
  cmake_parse_arguments(PARSE_ARGV 2 headers "" "" "FOLDERS;LIBS")
  list(TRANSFORM headers_FOLDERS APPEND "/*.h" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ${patterns})
  foreach(header IN LISTS found)
    set(source "${PROJECT_BINARY_DIR}/headers/${header}.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"stagecraft/${header}\"\n" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  set(target stagecraft_headers_of_${name})
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
  stagecraft_target_defaults(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${target} PRIVATE ${headers_LIBS})
  stagecraft_compile_quickly(${target} 0)
  if(NOT pch STREQUAL "none")
    stagecraft_use_pch(${target} ${pch})
  endif()
  add_dependencies(stagecraft_headers_alone ${target})
endfunction()

add_custom_target(stagecraft_headers_alone)
stagecraft_headers_of(plain none FOLDERS base scheduler LIBS stagecraft::scheduler)
stagecraft_headers_of(tensors tensors FOLDERS futures compiler actors LIBS stagecraft::stagecraft CAF::openssl)
