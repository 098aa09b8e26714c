# Defines the three kinds of target of this repository: a layer, a program and a layer's tests.

include(GNUInstallDirs)
include(Catch)  # from Catch2: catch_discover_tests

# Warnings apply to our code only: they are linked PRIVATE and never exported. A designated
# initializer leaves the other members at their defaults on purpose, which g++ reports as missing.
add_library(stagecraft_warnings INTERFACE)
target_compile_options(stagecraft_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers $<$<BOOL:${STAGECRAFT_WERROR}>:-Werror>)
if(CMAKE_UNITY_BUILD)
  # g++ looks for garbage each time its memory has grown by a third, and marks all of a precompiled header each time.
  # Without, it takes a quarter less time and 0.2 GB more for a batch that reads LibTorch.
  target_compile_options(stagecraft_warnings INTERFACE
    "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=4000000>")
  # The warning is about anonymous types in headers; in a batch, g++ takes an included source for a
  # header.
  target_compile_options(stagecraft_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# Sets what all three kinds share.
function(stagecraft_target_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${STAGECRAFT_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:stagecraft_warnings>)
  # Uses one kind of code everywhere, so that one precompiled header serves libraries and programs.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  stagecraft_compile_in_batches(${target})
  if(STAGECRAFT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${STAGECRAFT_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC $<BUILD_INTERFACE:-fsanitize=${STAGECRAFT_SANITIZE}>)
  endif()
endfunction()

# stagecraft_compile_in_batches(<target>)
#
# Groups the sources of each folder in batches of at most 24; folders of fewer than 12 sources share batches. With
# CMAKE_UNITY_BUILD a batch is one translation unit, which takes a third of the processor time; without it each source
# is compiled alone. Names outside of functions must differ within a folder, and among the small folders of a target.
function(stagecraft_compile_in_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(IS_ABSOLUTE "${source}")
      continue()  # made by the build
    endif()
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "in_${folder}" room)
    list(APPEND rooms ${room})
    list(APPEND ${room} ${source})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    list(LENGTH ${room} count)
    if(count LESS 12)
      list(APPEND small_rooms ${${room}})
      list(REMOVE_ITEM rooms ${room})
    endif()
  endforeach()
  if(small_rooms)
    list(APPEND rooms small_rooms)
  endif()
  foreach(room IN LISTS rooms)
    list(LENGTH ${room} count)
    math(EXPR batches "(${count} + 23) / 24")
    math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
    set(index 0)
    foreach(source IN LISTS ${room})
      math(EXPR batch "${index} / ${size}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room}_${batch})
      math(EXPR index "${index} + 1")
    endforeach()
  endforeach()
endfunction()

function(stagecraft_link_defaults target)
  if(STAGECRAFT_HAS_MOLD)
    # mold 1.10 otherwise places thread-local data before the first page of the data if these begin on a page of their
    # own, and the program does not start: "cannot apply additional memory protection after relocation".
    target_link_options(${target} PRIVATE -fuse-ld=mold -Wl,-z,separate-code)
  endif()
endfunction()

# stagecraft_add_layer(<name> SOURCES ... [PUBLIC lib...] [PRIVATE lib...])
#
# Adds the static library stagecraft_<name> with the alias stagecraft::<name>. PUBLIC lists what its
# headers include, PRIVATE what only its sources include.
function(stagecraft_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "SOURCES;PUBLIC;PRIVATE")
  set(target stagecraft_${name})
  add_library(${target} STATIC ${layer_SOURCES})
  add_library(stagecraft::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  stagecraft_target_defaults(${target})
  target_link_libraries(${target} PUBLIC ${layer_PUBLIC})
  foreach(library IN LISTS layer_PRIVATE)
    stagecraft_is_header_only(${library} header_only)
    if(header_only)
      # A program that links the archive does not need these, so the installed package does not ask
      # for them.
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}>)
    else()
      target_link_libraries(${target} PRIVATE ${library})
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_LAYERS ${target})
endfunction()

function(stagecraft_is_header_only library result)
  set(${result} FALSE PARENT_SCOPE)
  if(TARGET ${library})
    get_target_property(type ${library} TYPE)
    get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
    if(type STREQUAL "INTERFACE_LIBRARY" AND NOT links)
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

# stagecraft_add_program(<name> SOURCES ... LIBS ... [FOLDER examples|bench])
#
# Adds an executable in bin/, or in bin/<FOLDER>.
function(stagecraft_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "FOLDER" "SOURCES;LIBS")
  add_executable(${name} ${program_SOURCES})
  stagecraft_target_defaults(${name})
  stagecraft_link_defaults(${name})
  target_link_libraries(${name} PRIVATE ${program_LIBS})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program_FOLDER}")
endfunction()

# stagecraft_compile_quickly(<target> <level>)
#
# Lowers the optimization of code that takes longer to compile than it ever computes: level 1 for the words and
# tables of a command, 0 for tests and examples. Call it before stagecraft_use_pch.
function(stagecraft_compile_quickly target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O${level}>)
  set_target_properties(${target} PROPERTIES STAGECRAFT_LEVEL ${level})
endfunction()

# stagecraft_add_tests(<layer> SOURCES ... [LIBS ...] [FIRST] [SOME_ALONE])
#
# Adds the executable stagecraft_<layer>_tests, and CTest tests labeled <layer>. All cases of a room are one CTest test,
# because starting a process that links LibTorch takes 0.3 s; so are all cases of a source file that is in no room.
# Cases with the tag [alone] are tests of their own, because they need a process that has done nothing before;
# SOME_ALONE says that there are some. FIRST lets CTest begin with these tests: they mostly wait, and others can run
# meanwhile.
function(stagecraft_add_tests layer)
  cmake_parse_arguments(PARSE_ARGV 1 tests "FIRST;SOME_ALONE" "" "SOURCES;LIBS")
  set(target stagecraft_${layer}_tests)
  add_executable(${target} ${tests_SOURCES})
  stagecraft_target_defaults(${target})
  stagecraft_compile_quickly(${target} 0)
  stagecraft_link_defaults(${target})
  target_link_libraries(${target} PRIVATE ${tests_LIBS} Catch2::Catch2WithMain)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tests")
  set(files "")
  set(rooms "")
  foreach(source IN LISTS tests_SOURCES)
    cmake_path(GET source STEM file)
    if(file MATCHES "_test$" AND NOT file IN_LIST files)  # the tag of a file does not name its folder
      cmake_path(GET source PARENT_PATH room)
      string(REPLACE "../" "" room "${room}")
      if(room STREQUAL "")
        string(REGEX REPLACE "_test$" "" room "${file}")
      endif()
      list(APPEND files "${file}")
      list(APPEND rooms "${room}")
      list(APPEND "cases of ${room}" "[#${file}]~[alone]")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    list(JOIN "cases of ${room}" "," cases)
    add_test(NAME "${layer}: ${room}" COMMAND ${target} --filenames-as-tags "${cases}" --allow-running-no-tests
      --durations yes WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    list(APPEND names "${layer}: ${room}")
  endforeach()
  set(cache "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache")  # keeps profiles out of the user's folder
  # Several tests run at a time, so a thread of an operator that waits must not occupy a processor.
  set_tests_properties(${names} PROPERTIES LABELS ${layer} TIMEOUT 600 SKIP_RETURN_CODE 4
    ENVIRONMENT "${cache};OMP_WAIT_POLICY=passive")
  if(tests_FIRST)
    set_tests_properties(${names} PROPERTIES COST 100)
  endif()
  if(tests_SOME_ALONE)
    catch_discover_tests(${target} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${layer}: " TEST_SPEC "[alone]"
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTIES LABELS ${layer} TIMEOUT 300 ENVIRONMENT "${cache}")
  endif()
endfunction()

# stagecraft_use_pch(<target> <copy>)
#
# Shares one precompiled copy of LibTorch's headers among all targets that read them; <copy> is
#   tensors  for layers: tensors and autograd's nodes, 15 s a file without
#   modules  <torch/torch.h>, 19 s a file without, and slower to load than the first
# Targets that do not optimize (level 0) share another copy: a copy fits only targets that optimize if it did.
# Link LibTorch::cpu before. A source that includes neither compiles faster without it.
function(stagecraft_use_pch target copy)
  set(tensors_headers <ATen/core/Tensor.h> <torch/csrc/autograd/function.h> <fmt/format.h>)
  set(modules_headers <torch/torch.h>)
  get_target_property(level ${target} STAGECRAFT_LEVEL)
  set(pch stagecraft_${copy}_pch)
  if(level STREQUAL "0")
    set(pch stagecraft_${copy}_unoptimized_pch)
  endif()
  if(NOT TARGET ${pch})
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${pch}.cc" CONTENT "" @ONLY)
    add_library(${pch} OBJECT "${PROJECT_BINARY_DIR}/${pch}.cc")
    stagecraft_target_defaults(${pch})
    if(level STREQUAL "0")
      stagecraft_compile_quickly(${pch} 0)
    endif()
    target_link_libraries(${pch} PRIVATE LibTorch::cpu fmt::fmt)
    target_precompile_headers(${pch} PRIVATE ${${copy}_headers})
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)  # a copy fits only targets that agree on the macros it saw
  target_precompile_headers(${target} REUSE_FROM ${pch})
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # lets ccache see through the precompiled header
endfunction()
