# FindHttplib finds cpp-httplib as a library, whose Debian package has no CMake configuration.
#
# Targets: Httplib::httplib
# Variables: Httplib_FOUND, Httplib_VERSION

find_path(Httplib_INCLUDE_DIR httplib.h)
find_library(Httplib_LIBRARY cpp-httplib)
mark_as_advanced(Httplib_INCLUDE_DIR Httplib_LIBRARY)

if(Httplib_INCLUDE_DIR)
  file(STRINGS "${Httplib_INCLUDE_DIR}/httplib.h" _httplib_line REGEX "define CPPHTTPLIB_VERSION \"")
  string(REGEX REPLACE ".*\"([^\"]*)\".*" "\\1" Httplib_VERSION "${_httplib_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib
  REQUIRED_VARS Httplib_LIBRARY Httplib_INCLUDE_DIR
  VERSION_VAR Httplib_VERSION
  REASON_FAILURE_MESSAGE "Run tools/setup, or install the package libcpp-httplib-dev.")

if(Httplib_FOUND AND NOT TARGET Httplib::httplib)
  add_library(Httplib::httplib UNKNOWN IMPORTED)
  set_target_properties(Httplib::httplib PROPERTIES
    IMPORTED_LOCATION "${Httplib_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Httplib_INCLUDE_DIR}"
    # Debian builds the library with it, and the layout of its classes depends on it.
    INTERFACE_COMPILE_DEFINITIONS CPPHTTPLIB_OPENSSL_SUPPORT)
endif()
