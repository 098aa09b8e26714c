# FindLibTorch finds LibTorch as the Python wheel or the zip archive lays it out.
#
# The TorchConfig.cmake of a CUDA build requires a CUDA toolkit, which a program that computes on
# the CPU does not need. The search covers LibTorch_ROOT (variable or environment), the place of
# Torch_DIR, CMAKE_PREFIX_PATH, and the cache folder that tools/setup fills.
#
# A project may also call find_package(Torch), before or after. Both must then find the same copy.
#
# Targets: LibTorch::cpu   headers, torch_cpu, c10
#          LibTorch::cuda  the same and torch_cuda, c10_cuda; only where these are found
#          LibTorch::fmt   the distribution's fmt, searched before LibTorch's own; part of the others
# Variables: LibTorch_FOUND, LibTorch_VERSION

if("$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(_libtorch_cache "$ENV{HOME}/.cache/stagecraft")
else()
  set(_libtorch_cache "$ENV{XDG_CACHE_HOME}/stagecraft")
endif()

# A prefix is often given as PyTorch prints it: .../torch/share/cmake.
string(REPLACE ":" ";" _libtorch_prefixes "$ENV{CMAKE_PREFIX_PATH}")
list(PREPEND _libtorch_prefixes ${CMAKE_PREFIX_PATH})
list(TRANSFORM _libtorch_prefixes APPEND "/../..")
if(Torch_DIR)
  list(PREPEND _libtorch_prefixes "${Torch_DIR}/../../..")
endif()

find_path(LibTorch_INCLUDE_DIR ATen/core/Tensor.h
  HINTS ${_libtorch_prefixes} "${_libtorch_cache}/libtorch-2.11.0/torch"
  PATH_SUFFIXES include torch/include)

if(LibTorch_INCLUDE_DIR)
  cmake_path(NORMAL_PATH LibTorch_INCLUDE_DIR)
  # Takes the libraries beside the headers, never those of a second copy.
  cmake_path(GET LibTorch_INCLUDE_DIR PARENT_PATH _libtorch_home)
  foreach(_library IN ITEMS torch_cpu c10 torch_cuda c10_cuda)
    find_library(LibTorch_${_library}_LIBRARY ${_library}
      PATHS "${_libtorch_home}/lib" "${_libtorch_home}/lib/${CMAKE_LIBRARY_ARCHITECTURE}" NO_DEFAULT_PATH)
    mark_as_advanced(LibTorch_${_library}_LIBRARY)
  endforeach()

  foreach(_header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS "${LibTorch_INCLUDE_DIR}/${_header}" AND NOT LibTorch_VERSION)
      file(STRINGS "${LibTorch_INCLUDE_DIR}/${_header}" _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      list(TRANSFORM _lines REPLACE ".* ([0-9]+)$" "\\1")
      list(JOIN _lines "." LibTorch_VERSION)
    endif()
  endforeach()
endif()
mark_as_advanced(LibTorch_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "Run tools/setup, which puts LibTorch into ${_libtorch_cache}, or name your own copy in CMAKE_PREFIX_PATH or LibTorch_ROOT.")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  find_package(Threads REQUIRED)

  # LibTorch's headers contain another fmt, with which the distribution's spdlog does not compile.
  # So users of LibTorch first search a folder that leads only to the distribution's fmt (-I comes
  # before -isystem). The folder has headers that include the distribution's, not a link, so that
  # those stay system headers.
  add_library(LibTorch::fmt INTERFACE IMPORTED)
  find_package(fmt QUIET)
  if(TARGET fmt::fmt)
    get_target_property(_libtorch_fmt_places fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
    find_path(_libtorch_fmt fmt/format.h PATHS ${_libtorch_fmt_places} NO_DEFAULT_PATH NO_CACHE)
    if(_libtorch_fmt)
      set(_libtorch_fmt_alone "${CMAKE_BINARY_DIR}/CMakeFiles/fmt-before-libtorch")
      file(GLOB _libtorch_fmt_headers RELATIVE "${_libtorch_fmt}" "${_libtorch_fmt}/fmt/*.h")
      foreach(_header IN LISTS _libtorch_fmt_headers)
        file(CONFIGURE OUTPUT "${_libtorch_fmt_alone}/${_header}" @ONLY
          CONTENT "#pragma GCC system_header\n#include \"${_libtorch_fmt}/${_header}\"\n")
      endforeach()
      set_target_properties(LibTorch::fmt PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${_libtorch_fmt_alone}" SYSTEM OFF)
    endif()
  endif()

  # The wheel is built with the compiler's default (new) string ABI, so no definition is needed.
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES
    IMPORTED_LOCATION "${LibTorch_c10_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LibTorch_INCLUDE_DIR};${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES LibTorch::fmt)

  # torch_cpu finds the libraries that it links (OpenMP, the two small CUDA libraries) by its own
  # run path.
  add_library(LibTorch::cpu SHARED IMPORTED)
  set_target_properties(LibTorch::cpu PROPERTIES
    IMPORTED_LOCATION "${LibTorch_torch_cpu_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "LibTorch::c10;Threads::Threads")

  if(LibTorch_torch_cuda_LIBRARY AND LibTorch_c10_cuda_LIBRARY)
    add_library(LibTorch::c10_cuda SHARED IMPORTED)
    set_target_properties(LibTorch::c10_cuda PROPERTIES
      IMPORTED_LOCATION "${LibTorch_c10_cuda_LIBRARY}" INTERFACE_LINK_LIBRARIES LibTorch::c10)
    add_library(LibTorch::cuda SHARED IMPORTED)
    set_target_properties(LibTorch::cuda PROPERTIES
      IMPORTED_LOCATION "${LibTorch_torch_cuda_LIBRARY}"
      INTERFACE_LINK_LIBRARIES "LibTorch::c10_cuda;LibTorch::cpu")
  endif()

  # Two copies in one program would register every operator twice and crash before main.
  function(_libtorch_check_one_copy)
    if(TARGET torch_cpu)
      foreach(_property IN ITEMS IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION)
        get_target_property(_theirs torch_cpu ${_property})
        if(_theirs)
          break()
        endif()
      endforeach()
      get_target_property(_ours LibTorch::cpu IMPORTED_LOCATION)
      if(_theirs)
        file(REAL_PATH "${_theirs}" _theirs)
        file(REAL_PATH "${_ours}" _ours)
      endif()
      if(_theirs AND NOT _theirs STREQUAL _ours)
        message(FATAL_ERROR "find_package(Torch) found ${_theirs}, and Stagecraft ${_ours}: a program can have only one "
          "LibTorch. Name one of them in LibTorch_ROOT and in CMAKE_PREFIX_PATH, in a fresh build folder.")
      endif()
    endif()
  endfunction()
  cmake_language(DEFER CALL _libtorch_check_one_copy)  # Torch may be found after this
endif()
