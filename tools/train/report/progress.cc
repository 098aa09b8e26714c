#include "stagecraft/tools/train/report/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/count_text.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/interrupt.h"

namespace stagecraft::tools {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return whole < 60 ? fmt::format("{}s", whole) : fmt::format("{}m{:02}s", whole / 60, whole % 60);
}

/// Returns tokens per second, or steps without tokens. Steps are few, so they get three digits.
std::string rate_text(double steps_per_second, const std::optional<std::int64_t>& tokens) {
  return tokens ? fmt::format("{:.0f} tokens/s", steps_per_second * static_cast<double>(*tokens))
                : fmt::format("{:.3g} steps/s", steps_per_second);
}

std::string step_text(const StepLine& line) {
  if (line.skipped) {
    return fmt::format(
        "step {}/{}  loss {:.4f}  skipped: gradients are not finite at loss scale {}",
        line.step,
        line.steps,
        line.loss,
        line.loss_scale.value_or(1.0));
  }
  return fmt::format("step {}/{}  loss {:.4f}  {}  bubble {:.0f} %  slowest {}  ETA {}",
                     line.step,
                     line.steps,
                     line.loss,
                     rate_text(1.0 / line.seconds, line.tokens),
                     line.bubble * 100.0,
                     line.slowest,
                     duration(line.eta_seconds));
}

std::string compared_text(const VerifyLine& line) {
  return fmt::format("{}, {}, {}",
                     count_text(line.losses, "loss"),
                     count_text(line.parameters, "parameter"),
                     count_text(line.buffers, "buffer"));
}

/// Returns the columns of the terminal; no limit if there is none.
std::size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : std::string::npos;
}

/// Prints lines for people. `live`: a step overwrites the one before.
class TextProgress : public Progress {
 public:
  TextProgress(RunOutput& out, bool live) : out_(out), live_(live) {}

  void step(const StepLine& line) override {
    if (!live_) {
      text(step_text(line) + "\n");
      return;
    }
    // Uses a carriage return and "erase to the end of the line", since the line may be shorter than
    // the one before. Cuts it to the terminal's width: a line that wraps could not be overwritten.
    out_.write(fmt::format("\r{}\x1b[K", step_text(line).substr(0, terminal_width() - 1)));
    open_line_ = true;
  }

  void evaluated(const EvalLine& line) override {
    std::string metrics;
    for (const auto& [name, value] : line.metrics) {
      metrics += fmt::format("  {} {:.4f}", name, value);
    }
    text(fmt::format("step {}  evaluation loss {:.4f}{}\n", line.step, line.loss, metrics));
  }

  void saved(std::int64_t step, const std::string& path) override {
    text(fmt::format("saved step {} to {}\n", step, path));
  }

  void saved_weights(std::int64_t step, const std::string& path) override {
    text(fmt::format("saved the weights of step {} to {}\n", step, path));
  }

  void interrupted(std::int64_t step, int signal) override {
    text(fmt::format("interrupted by {} after step {}\n", signal_name(signal), step));
  }

  void verified(const VerifyLine& line) override {
    if (line.bit_equal) {
      text(fmt::format("verify: bit-equal to one process ({})\n", compared_text(line)));
    } else if (line.good) {
      text(
          fmt::format("verify: {}within {:g} of one process ({}; largest "
                      "difference {:g}); not bit-equal, because {}\n",
                      line.equal_as_ranks.value_or(false)
                          ? "bit-equal to one process that adds gradients as the ranks do, and "
                          : "",
                      line.bound,
                      compared_text(line),
                      line.max_abs_diff,
                      line.reordered));
    } else if (line.equal_as_ranks && !*line.equal_as_ranks) {
      text(
          fmt::format("verify: NOT bit-equal to one process that adds gradients as the ranks do: "
                      "{}; largest difference from one process {:g}\n",
                      line.first_difference,
                      line.max_abs_diff));
    } else {
      text(fmt::format(
          "verify: NOT {} one process: {}; largest difference {:g}\n",
          line.reordered.empty() ? "bit-equal to" : fmt::format("within {:g} of", line.bound),
          line.first_difference,
          line.max_abs_diff));
    }
    if (!line.likely_cause.empty()) {
      text(fmt::format("verify: the likely cause is that {}\n", line.likely_cause));
    }
    if (!line.reordered_buffers.empty()) {
      text(
          fmt::format("verify: not compared, because forwards write them in another order than one "
                      "process: {}\n",
                      fmt::join(line.reordered_buffers, ", ")));
    }
  }

  void done(const DoneLine& line) override {
    text(fmt::format(
        "done: step {}{}{}\n",
        line.steps,
        line.loss ? fmt::format(", loss {:.4f}", *line.loss) : "",
        line.steps_per_second ? ", " + rate_text(*line.steps_per_second, line.tokens) : ""));
  }

  void report(const std::string& text, const nlohmann::ordered_json&) override { this->text(text); }

  void text(const std::string& text) override {
    if (open_line_) {
      out_.write("\n");
      open_line_ = false;
    }
    out_.write(text);
  }

 private:
  RunOutput& out_;
  bool live_;
  bool open_line_ = false;
};

/// Prints objects for programs; keys keep the order in which they are written here.
class JsonProgress : public Progress {
  using Object = nlohmann::ordered_json;

 public:
  explicit JsonProgress(RunOutput& out) : out_(out) {}

  void step(const StepLine& line) override {
    Object object{{"event", "step"}, {"step", line.step}, {"loss", line.loss}};
    if (line.tokens) {
      object["tokens"] = *line.tokens;
    }
    object["seconds"] = line.seconds;
    object["bubble_fraction"] = line.bubble;
    object["learning_rate"] = line.learning_rate;
    object["gradient_norm"] = line.gradient_norm;
    for (const auto& [name, numbers] : line.counts) {
      object["counts"][name] = numbers;
    }
    if (line.loss_scale) {
      object["loss_scale"] = *line.loss_scale;
      object["skipped"] = line.skipped;
    }
    write(object);
  }

  void evaluated(const EvalLine& line) override {
    Object metrics = Object::object();
    for (const auto& [name, value] : line.metrics) {
      metrics[name] = value;
    }
    write({{"event", "eval"}, {"step", line.step}, {"loss", line.loss}, {"metrics", metrics}});
  }

  void saved(std::int64_t step, const std::string& path) override {
    write({{"event", "saved"}, {"step", step}, {"file", path}});
  }

  void saved_weights(std::int64_t step, const std::string& path) override {
    write({{"event", "saved_weights"}, {"step", step}, {"file", path}});
  }

  void interrupted(std::int64_t step, int signal) override {
    write({{"event", "interrupted"}, {"step", step}, {"signal", signal_name(signal)}});
  }

  void verified(const VerifyLine& line) override {
    Object object{{"event", "verify"},
                  {"bit_equal", line.bit_equal},
                  {"max_abs_diff", line.max_abs_diff},
                  {"losses", line.losses},
                  {"parameters", line.parameters},
                  {"buffers", line.buffers}};
    if (!line.reordered_buffers.empty()) {
      object["reordered_buffers"] = line.reordered_buffers;
    }
    if (!line.bit_equal) {
      object["first_difference"] = line.first_difference;
    }
    if (line.equal_as_ranks) {
      object["bit_equal_as_ranks"] = *line.equal_as_ranks;
    }
    if (!line.likely_cause.empty()) {
      object["likely_cause"] = line.likely_cause;
    }
    if (!line.reordered.empty()) {
      object["bound"] = line.bound;
      object["within_bound"] = line.good;
      object["reordered"] = line.reordered;
    }
    write(object);
  }

  void done(const DoneLine& line) override {
    Object object{{"event", "done"}, {"steps", line.steps}};
    if (line.loss) {
      object["loss"] = *line.loss;
    }
    if (line.steps_per_second && line.tokens) {
      object["tokens_per_second"] = *line.steps_per_second * static_cast<double>(*line.tokens);
    } else if (line.steps_per_second) {
      object["steps_per_second"] = *line.steps_per_second;
    }
    object["weights_sha256"] = line.weights_sha256;
    write(object);
  }

  void report(const std::string&, const Object& event) override { write(event); }

  void text(const std::string&) override {}

 private:
  void write(const Object& event) { out_.write(command_json("train", event)); }

  RunOutput& out_;
};

}  // namespace

ProgressForm progress_form(bool json) {
  if (json) {
    return ProgressForm::JsonLines;
  }
  return isatty(STDOUT_FILENO) == 1 ? ProgressForm::Live : ProgressForm::Plain;
}

std::unique_ptr<Progress> make_progress(ProgressForm form, RunOutput& out) {
  if (form == ProgressForm::JsonLines) {
    return std::make_unique<JsonProgress>(out);
  }
  return std::make_unique<TextProgress>(out, form == ProgressForm::Live);
}

}  // namespace stagecraft::tools
