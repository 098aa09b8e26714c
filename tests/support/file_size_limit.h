/// FileSizeLimit makes writes fail as a full disk does.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <stdexcept>

namespace stagecraft::tests {

/// While a FileSizeLimit lives, this process can write no file beyond so many bytes. A write beyond
/// the limit raises a signal that would end the test; it is an error only if the signal is ignored.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    const bool known = getrlimit(RLIMIT_FSIZE, &before_) == 0;
    const struct rlimit small { bytes, before_.rlim_max };
    if (!known || setrlimit(RLIMIT_FSIZE, &small) != 0) {
      throw std::runtime_error("the size of files cannot be limited");
    }
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  struct rlimit before_ {};
};

}  // namespace stagecraft::tests
