/// Progress prints the reports of a training run while it runs, in one of three forms.
///
///   on a terminal       one line that is overwritten
///   not on a terminal   a plain line per step
///   --json              an object per line, for programs
///
/// make_progress() makes it for one run, and the run's thread calls it. Only the form differs: the
/// run makes the same calls for all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/tools/train/report/run_output.h"

namespace stagecraft::tools {

struct StepLine {
  std::int64_t step = 0;
  std::int64_t steps = 0;  ///< where the run ends
  double loss = 0.0;
  std::optional<std::int64_t> tokens;  ///< of this step; none: count steps instead
  double seconds = 0.0;                ///< of this step
  double bubble = 0.0;                 ///< share of rank time in which nothing was computed
  double learning_rate = 0.0;          ///< of parameters whose group has none of its own
  double gradient_norm = 0.0;          ///< before clipping
  std::map<std::string, std::vector<double>> counts;  ///< of the model (sc::count)
  std::optional<double> loss_scale;                   ///< of float16
  bool skipped = false;                               ///< StepResult::skipped
  std::string slowest;                                ///< the stage whose rank computed longest
  double eta_seconds = 0.0;
};

struct EvalLine {
  std::int64_t step = 0;
  double loss = 0.0;
  std::vector<std::pair<std::string, double>> metrics;
};

struct VerifyLine {
  bool bit_equal = false;
  bool good = false;      ///< bit-equal, or within `bound` where the schedule reorders sums
  std::string reordered;  ///< the reason why it reorders them; empty if bits must be equal
  double bound = 0.0;     ///< largest allowed difference, over max(1, the value)
  double max_abs_diff = 0.0;
  std::int64_t losses = 0;                     ///< steps compared
  std::int64_t parameters = 0;                 ///< number compared
  std::int64_t buffers = 0;                    ///< number compared
  std::vector<std::string> reordered_buffers;  ///< not compared: forwards write them out of order
  std::string first_difference;                ///< empty when bit-equal
  /// True if the run is bit-equal to one process that adds gradients in the order of the ranks;
  /// none: it was compared with one process alone.
  std::optional<bool> equal_as_ranks = {};
  std::string likely_cause = {};  ///< empty if unknown
};

struct DoneLine {
  std::int64_t steps = 0;
  std::optional<double> loss;              ///< of the last step; none: it was lost with a worker
  std::optional<double> steps_per_second;  ///< none: the results of all steps were lost
  std::optional<std::int64_t> tokens;      ///< of one step, as in StepLine
  std::string weights_sha256;              ///< for programs; people get it on a line of its own
};

class Progress {
 public:
  virtual ~Progress() = default;
  virtual void step(const StepLine& line) = 0;
  virtual void evaluated(const EvalLine& line) = 0;
  virtual void saved(std::int64_t step, const std::string& path) = 0;
  virtual void saved_weights(std::int64_t step, const std::string& path) = 0;
  virtual void interrupted(std::int64_t step, int signal) = 0;
  virtual void verified(const VerifyLine& line) = 0;
  virtual void done(const DoneLine& line) = 0;
  /// Reports the same in two forms: as text, ending in a newline, and as an event, an object whose
  /// first field is "event".
  virtual void report(const std::string& text, const nlohmann::ordered_json& event) = 0;
  /// Reports a note in the same way; a quiet run prints it, too.
  virtual void note(const std::string& text, const nlohmann::ordered_json& event) {
    report(text, event);
  }
  /// Prints text for people unchanged; the JSON form leaves it out.
  virtual void text(const std::string& text) = 0;
};

enum class ProgressForm { Live, Plain, JsonLines };

/// Returns the form for standard output: JSON if requested, live on a terminal, otherwise plain.
[[nodiscard]] ProgressForm progress_form(bool json);

[[nodiscard]] std::unique_ptr<Progress> make_progress(ProgressForm form, RunOutput& out);

}  // namespace stagecraft::tools
