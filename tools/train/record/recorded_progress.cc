#include "stagecraft/tools/train/record/recorded_progress.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {
namespace {

class RecordedProgress : public Progress {
 public:
  RecordedProgress(std::unique_ptr<Progress> form, RunFolder& folder)
      : form_(std::move(form)), folder_(folder) {}

  void step(const StepLine& line) override { form_->step(line); }
  void evaluated(const EvalLine& line) override { form_->evaluated(line); }
  void saved(std::int64_t step, const std::string& path) override { form_->saved(step, path); }
  void saved_weights(std::int64_t step, const std::string& path) override {
    form_->saved_weights(step, path);
  }
  void interrupted(std::int64_t step, int signal) override {
    folder_.append({{"event", "interrupted"}, {"step", step}, {"signal", signal}});
    form_->interrupted(step, signal);
  }
  void verified(const VerifyLine& line) override {
    if (!line.good) {
      folder_.append({{"event", "not_verified"}, {"difference", line.first_difference}});
    }
    form_->verified(line);
  }
  void done(const DoneLine& line) override {
    folder_.append(
        {{"event", "done"}, {"step", line.steps}, {"weights_sha256", line.weights_sha256}});
    form_->done(line);
  }
  void report(const std::string& text, const nlohmann::ordered_json& event) override {
    form_->report(text, event);
  }
  void note(const std::string& text, const nlohmann::ordered_json& event) override {
    if (event.value("event", "") != "watch") {  // its link has a key
      folder_.append(event);
    }
    form_->note(text, event);
  }
  void text(const std::string& text) override { form_->text(text); }

 private:
  const std::unique_ptr<Progress> form_;
  RunFolder& folder_;
};

}  // namespace

std::unique_ptr<Progress> make_recorded_progress(std::unique_ptr<Progress> form,
                                                 RunFolder& folder) {
  return std::make_unique<RecordedProgress>(std::move(form), folder);
}

}  // namespace stagecraft::tools
