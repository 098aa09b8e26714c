# Imports everything outside this repository as targets. Downloads nothing; tools/setup does that.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(Catch2 3 REQUIRED)
find_package(LibTorch 2.11 REQUIRED)
find_package(CAF 0.17.6...<0.18 REQUIRED COMPONENTS core io openssl)
find_package(ZeroMQ 4.3.4 REQUIRED)
find_package(Httplib 0.11 REQUIRED)
find_package(PNG 1.6 REQUIRED)
find_package(TurboJPEG REQUIRED)

# The distribution's msgpack is header-only. By default it needs Boost, but only for its
# preprocessor tables.
find_path(MSGPACK_INCLUDE_DIR msgpack.hpp REQUIRED)
add_library(msgpack INTERFACE IMPORTED)
target_include_directories(msgpack INTERFACE "${MSGPACK_INCLUDE_DIR}")
target_compile_definitions(msgpack INTERFACE MSGPACK_NO_BOOST)
