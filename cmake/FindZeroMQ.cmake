# FindZeroMQ finds libzmq, whose Debian package has no CMake configuration.
#
# Targets: ZeroMQ::zmq     the library and zmq.h
#          ZeroMQ::cppzmq  zmq.hpp alone, which needs nothing when a program is linked; only where it is found
# Variables: ZeroMQ_FOUND, ZeroMQ_VERSION

find_path(ZeroMQ_INCLUDE_DIR zmq.h)
find_path(ZeroMQ_cppzmq_INCLUDE_DIR zmq.hpp)
find_library(ZeroMQ_LIBRARY zmq)
mark_as_advanced(ZeroMQ_INCLUDE_DIR ZeroMQ_cppzmq_INCLUDE_DIR ZeroMQ_LIBRARY)

if(ZeroMQ_INCLUDE_DIR)
  file(STRINGS "${ZeroMQ_INCLUDE_DIR}/zmq.h" _zmq_lines REGEX "define ZMQ_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  list(TRANSFORM _zmq_lines REPLACE ".* ([0-9]+)$" "\\1")
  list(JOIN _zmq_lines "." ZeroMQ_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZeroMQ
  REQUIRED_VARS ZeroMQ_LIBRARY ZeroMQ_INCLUDE_DIR
  VERSION_VAR ZeroMQ_VERSION
  REASON_FAILURE_MESSAGE "Run tools/setup, or install the packages libzmq3-dev and cppzmq-dev.")

if(ZeroMQ_FOUND AND NOT TARGET ZeroMQ::zmq)
  add_library(ZeroMQ::zmq UNKNOWN IMPORTED)
  set_target_properties(ZeroMQ::zmq PROPERTIES
    IMPORTED_LOCATION "${ZeroMQ_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ZeroMQ_INCLUDE_DIR}")
endif()
if(ZeroMQ_cppzmq_INCLUDE_DIR AND NOT TARGET ZeroMQ::cppzmq)
  add_library(ZeroMQ::cppzmq INTERFACE IMPORTED)
  set_target_properties(ZeroMQ::cppzmq PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${ZeroMQ_cppzmq_INCLUDE_DIR}")
endif()
