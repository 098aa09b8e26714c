/// FitProgress writes the progress line of fit().
///
/// fit() makes it for one call and uses it on its thread alone. On a terminal, the line of a step
/// overwrites the one before, at most ten times a second. Elsewhere it writes one line per epoch.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

namespace stagecraft {

class FitProgress {
 public:
  /// `stream`: null for none.
  FitProgress(std::ostream* stream, std::int64_t epochs);
  /// Ends the live line.
  ~FitProgress();
  FitProgress(const FitProgress&) = delete;
  FitProgress& operator=(const FitProgress&) = delete;

  /// Shows a step. `loss`: the mean over the epoch so far. `steps`: updates of this call.
  void step(std::int64_t epoch, std::int64_t step, double loss, std::int64_t steps);
  /// Shows the value that the last evaluation found, in the lines from now on.
  void evaluated(const std::string& metric, double value);
  /// Ends an epoch. Call it after the epoch's last step.
  void end_epoch();

 private:
  using Clock = std::chrono::steady_clock;

  void write(const std::string& end);

  std::ostream* stream_;
  std::int64_t epochs_;
  bool live_;
  bool open_ = false;  // the terminal's cursor is behind a live line
  bool owed_ = false;  // the live line does not show the last step
  std::string line_, found_;
  Clock::time_point begun_ = Clock::now(), written_;
};

}  // namespace stagecraft
