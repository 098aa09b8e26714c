#include "stagecraft/tools/train/report/quiet_progress.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {
namespace {

class QuietProgress : public Progress {
 public:
  explicit QuietProgress(std::unique_ptr<Progress> form) : form_(std::move(form)) {}

  void step(const StepLine&) override {}
  void evaluated(const EvalLine&) override {}
  void saved(std::int64_t, const std::string&) override {}
  void saved_weights(std::int64_t, const std::string&) override {}
  void interrupted(std::int64_t, int) override {}
  void verified(const VerifyLine& line) override {
    if (!line.good) {
      form_->verified(line);
    }
  }
  void done(const DoneLine& line) override { form_->done(line); }
  void report(const std::string&, const nlohmann::ordered_json&) override {}
  void note(const std::string& text, const nlohmann::ordered_json& event) override {
    form_->note(text, event);
  }
  void text(const std::string&) override {}

 private:
  const std::unique_ptr<Progress> form_;
};

}  // namespace

std::unique_ptr<Progress> make_quiet_progress(std::unique_ptr<Progress> form) {
  return std::make_unique<QuietProgress>(std::move(form));
}

}  // namespace stagecraft::tools
