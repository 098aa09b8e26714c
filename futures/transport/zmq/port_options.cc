#include "stagecraft/futures/transport/zmq/port_options.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft {

void require_valid(const DataPortOptions& options) {
  const auto require = [](bool good, std::string what) {
    if (!good) {
      throw Error(Errc::UsageArgument, std::move(what));
    }
  };
  require(options.chunk_bytes > 0 && options.chunk_bytes <= kLargestChunk,
          fmt::format("chunk_bytes is {}: expected 1 to {}", options.chunk_bytes, kLargestChunk));
  require(options.largest_tensor > 0,
          fmt::format("largest_tensor is {}: expected 1 or more bytes", options.largest_tensor));
  require(options.shared_memory >= 0 && options.shared_memory <= MemoryFile::kLargest,
          fmt::format("shared_memory is {}: expected 0 to {} bytes",
                      options.shared_memory,
                      MemoryFile::kLargest));
  require(options.io_threads > 0,
          fmt::format("io_threads is {}: expected 1 or more", options.io_threads));
  require(options.silence.count() >= 0,
          fmt::format("silence is {} ms: expected 0 or more", options.silence.count()));
}

}  // namespace stagecraft
