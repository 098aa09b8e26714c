#include "stagecraft/base/files/write_all.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// A pipe takes few bytes at once.
struct Pipe {
  Pipe() { REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(std::size_t end) {
    if (ends[end] >= 0) {
      close(ends[end]);
      ends[end] = -1;
    }
  }

  std::array<int, 2> ends{};
};

TEST_CASE("all bytes are written, however few the reader takes at once", "[base][write_all]") {
  std::string bytes(1'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i % 251);
  }
  Pipe pipe;
  int error = -1;
  std::thread writer([&] {
    error = write_all(pipe.ends[1], bytes);
    pipe.close_end(1);
  });
  std::string arrived;
  std::array<char, 1000> part{};
  for (ssize_t count = 1; count > 0;) {
    count = read(pipe.ends[0], part.data(), part.size());
    arrived.append(part.data(), static_cast<std::size_t>(count > 0 ? count : 0));
  }
  writer.join();
  CHECK(error == 0);
  CHECK(arrived == bytes);
}

TEST_CASE("a write that fails returns the reason of the system", "[base][write_all]") {
  const std::string bytes = "lost";
  CHECK(write_all(-1, bytes) == EBADF);
  CHECK(write_all(-1, {}) == 0);  // nothing to write
  Pipe pipe;
  pipe.close_end(0);
  const auto before = signal(SIGPIPE, SIG_IGN);
  CHECK(write_all(pipe.ends[1], bytes) == EPIPE);
  signal(SIGPIPE, before);
}

}  // namespace
}  // namespace stagecraft
