#include "stagecraft/actors/trainer/fit_progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{100};

/// Returns -1 for a stream without a known descriptor.
int descriptor_of(const std::ostream* stream) {
  if (stream == &std::cout) {
    return STDOUT_FILENO;
  }
  return stream == &std::cerr || stream == &std::clog ? STDERR_FILENO : -1;
}

bool is_terminal(const std::ostream* stream) {
  const int descriptor = descriptor_of(stream);
  return descriptor >= 0 && isatty(descriptor) == 1;
}

/// Returns the width of the terminal, since a line that wraps could not be overwritten.
std::size_t width_of(const std::ostream* stream) {
  winsize size{};
  const bool known = ioctl(descriptor_of(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1 : std::string::npos;
}

}  // namespace

FitProgress::FitProgress(std::ostream* stream, std::int64_t epochs)
    : stream_(stream), epochs_(epochs), live_(stream != nullptr && is_terminal(stream)) {}

FitProgress::~FitProgress() {
  try {
    end_epoch();
    if (open_) {
      *stream_ << '\n' << std::flush;
    }
  } catch (...) {  // the stream throws: only the progress line is lost
  }
}

void FitProgress::step(std::int64_t epoch, std::int64_t step, double loss, std::int64_t steps) {
  if (stream_ == nullptr) {
    return;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  line_ = fmt::format("epoch {}/{}  step {}  loss {:.6g}  {:.3g} steps/s",
                      epoch,
                      epochs_,
                      step,
                      loss,
                      seconds > 0.0 ? static_cast<double>(steps) / seconds : 0.0);
  owed_ = true;
  if (live_ && Clock::now() - written_ >= kBetweenLines) {
    write("");
  }
}

void FitProgress::evaluated(const std::string& metric, double value) {
  found_ = fmt::format("  evaluated {} {:.6g}", metric, value);
}

void FitProgress::end_epoch() {
  if (owed_) {
    write("\n");
  }
}

/// Uses a carriage return and "erase to the end of the line": a line may be shorter than the last
/// one.
void FitProgress::write(const std::string& end) {
  const std::string line = line_ + found_;
  if (live_) {
    *stream_ << '\r' << line.substr(0, width_of(stream_)) << "\x1b[K";
    open_ = true;
    written_ = Clock::now();
  } else {
    *stream_ << line << end;
  }
  *stream_ << std::flush;
  owed_ = false;
}

}  // namespace stagecraft
