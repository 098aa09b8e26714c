#include "stagecraft/base/log.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

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

TEST_CASE("a log line is the phrase, then each field as name=value", "[base][log]") {
  CHECK(log_line(
            "step done",
            {{"rank", Rank(1)}, {"step", Step(7)}, {"ms", 12.5}, {"last", true}, {"bytes", 64U}}) ==
        "step done rank=1 step=7 ms=12.5 last=true bytes=64");
  CHECK(log_line("cluster ready", {}) == "cluster ready");
}

TEST_CASE("a value that could be mistaken for more fields is quoted and stays on one line",
          "[base][log]") {
  CHECK(log_line("worker failed", {{"why", "no memory"}}) == R"(worker failed why="no memory")");
  CHECK(log_line("worker failed", {{"why", std::string("a=\"b\"\nc")}}) ==
        R"(worker failed why="a=\"b\"\nc")");
  CHECK(log_line("worker failed", {{"why", ""}}) == R"(worker failed why="")");
}

TEST_CASE("warnings reach standard error, lines below are dropped", "[base][log]") {
  std::string text;
  {
    const CapturedStderr captured;
    log(Level::Debug, "too quiet to hear");
    log(Level::Info, "still too quiet");
    log(Level::Warning, "heard", {{"step", Step(2)}});
    log(Level::Error, "heard, too");
    text = captured.text();
  }
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(text, ContainsSubstring("heard step=2") && ContainsSubstring("heard, too"));
  CHECK_THAT(text, !ContainsSubstring("too quiet"));
}

}  // namespace
}  // namespace stagecraft
