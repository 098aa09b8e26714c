# FindTurboJPEG finds libjpeg-turbo's own interface, whose Debian package has no CMake
# configuration.
#
# Targets: TurboJPEG::turbojpeg
# Variables: TurboJPEG_FOUND

find_path(TurboJPEG_INCLUDE_DIR turbojpeg.h)
find_library(TurboJPEG_LIBRARY turbojpeg)
mark_as_advanced(TurboJPEG_INCLUDE_DIR TurboJPEG_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TurboJPEG
  REQUIRED_VARS TurboJPEG_LIBRARY TurboJPEG_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Run tools/setup, or install the package libturbojpeg0-dev.")

if(TurboJPEG_FOUND AND NOT TARGET TurboJPEG::turbojpeg)
  add_library(TurboJPEG::turbojpeg UNKNOWN IMPORTED)
  set_target_properties(TurboJPEG::turbojpeg PROPERTIES
    IMPORTED_LOCATION "${TurboJPEG_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${TurboJPEG_INCLUDE_DIR}")
endif()
