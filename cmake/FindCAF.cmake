# FindCAF finds the C++ Actor Framework as Debian packages it, without a CMake configuration.
#
# Components: core (the default), io, openssl; each gives the target CAF::<component>.
# Variables: CAF_FOUND, CAF_VERSION

find_package(Threads REQUIRED)
find_path(CAF_INCLUDE_DIR caf/config.hpp)
mark_as_advanced(CAF_INCLUDE_DIR)

# The header says 1706 for 0.17.6.
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line REGEX "define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" _caf_number "${_caf_line}")
  if(_caf_number)
    math(EXPR _caf_major "${_caf_number} / 10000")
    math(EXPR _caf_minor "${_caf_number} / 100 % 100")
    math(EXPR _caf_patch "${_caf_number} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
endif()

# Each library needs the one before it.
set(_caf_needs Threads::Threads)
foreach(_component IN ITEMS core io openssl)
  find_library(CAF_${_component}_LIBRARY caf_${_component})
  mark_as_advanced(CAF_${_component}_LIBRARY)
  if(CAF_INCLUDE_DIR AND CAF_${_component}_LIBRARY)
    set(CAF_${_component}_FOUND TRUE)
    if(NOT TARGET CAF::${_component})
      add_library(CAF::${_component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${_component} PROPERTIES
        IMPORTED_LOCATION "${CAF_${_component}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
        INTERFACE_LINK_LIBRARIES "${_caf_needs}")
    endif()
    set(_caf_needs CAF::${_component})
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_core_LIBRARY CAF_INCLUDE_DIR
  VERSION_VAR CAF_VERSION
  HANDLE_VERSION_RANGE
  HANDLE_COMPONENTS
  REASON_FAILURE_MESSAGE "Run tools/setup, or install the package libcaf-dev (0.17.6).")
