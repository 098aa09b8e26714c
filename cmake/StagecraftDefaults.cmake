# Sets what every build of this repository has in common, so that no target repeats it.

get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_BUILD_TYPE AND NOT is_multi_config)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
# An installed program finds LibTorch where the build found it.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

option(STAGECRAFT_WERROR "Treat warnings as errors; always so where CI is set in the environment" OFF)
if(DEFINED ENV{CI})
  set(STAGECRAFT_WERROR ON)
endif()
set(STAGECRAFT_SANITIZE "" CACHE STRING "address, thread or empty")
set_property(CACHE STAGECRAFT_SANITIZE PROPERTY STRINGS "" address thread)

# ccache refuses precompiled headers unless it is told to ignore their definitions and times.
find_program(STAGECRAFT_CCACHE ccache DOC "Compiler cache, used where present")
if(STAGECRAFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${STAGECRAFT_CCACHE}")
endif()

include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold STAGECRAFT_HAS_MOLD)

# Includes are written "stagecraft/base/ids.h", here and in an installed copy. Before an
# installation, a folder in which `stagecraft` is a link to this repository makes that work.
set(STAGECRAFT_INCLUDE_DIR "${PROJECT_BINARY_DIR}/include")
file(MAKE_DIRECTORY "${STAGECRAFT_INCLUDE_DIR}")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}" "${STAGECRAFT_INCLUDE_DIR}/stagecraft" SYMBOLIC)
