/// CapturedStderr holds what this process writes to standard error, for tests of warnings.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {

/// Redirects standard error to a file while it lives.
class CapturedStderr {
 public:
  CapturedStderr() : file_(std::tmpfile()), saved_(dup(STDERR_FILENO)) {
    REQUIRE(file_ != nullptr);
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;
  ~CapturedStderr() {
    std::fflush(stderr);
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    std::fclose(file_);
  }

  [[nodiscard]] std::string text() const {
    std::fflush(stderr);
    std::string all;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      all += static_cast<char>(c);
    }
    return all;
  }

 private:
  std::FILE* file_;
  int saved_;
};

}  // namespace stagecraft::tests
