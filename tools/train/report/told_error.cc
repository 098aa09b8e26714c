#include "stagecraft/tools/train/report/told_error.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "stagecraft/base/advice.h"

namespace stagecraft::tools {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kNames{
    {{"step_deadline", "--step-deadline"}, {"memory_limit", "--memory-limit"}}};

std::string_view way_to_go_on(const TrainOptions& options) {
  return options.save_dir ? "start the run again, and it resumes from its last checkpoint"
                          : "start the run again; with --resume DIR --save-every N it would resume "
                            "from its last checkpoint";
}

Error in_options(const Error& error) {
  std::string text = error.message();
  for (const auto& [field, option] : kNames) {
    if (const std::size_t at = text.find(field); at != std::string::npos) {
      text.replace(at, field.size(), option);
    }
  }
  Error told(error.code(), std::move(text));
  told.with(error.context());
  if (error.cause() != nullptr) {
    told.because(in_options(*error.cause()));
  }
  return told;
}

}  // namespace

Error told_error(const Error& error, const TrainOptions& options) {
  return with_advice(in_options(error), way_to_go_on(options));
}

}  // namespace stagecraft::tools
