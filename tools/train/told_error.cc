#include "stagecraft/tools/train/told_error.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace stagecraft::tools {
namespace {

/// Beginnings of advice at the end of a message that names calls of a program: no option replaces
/// it.
constexpr std::array<std::string_view, 3> kAdvice{
    "; to go on: ", ": cluster.replace(", ": Cluster::replace "};

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kNames{
    {{"step_deadline", "--step-deadline"}, {"memory_limit", "--memory-limit"}}};

std::string way_to_go_on(const TrainOptions& options) {
  return options.save_dir
             ? "; to go on: start the run again, and it resumes from its last checkpoint"
             : "; to go on: start the run again; with --resume DIR --save-every N it would resume "
               "from its last checkpoint";
}

std::string told_text(std::string message, const TrainOptions& options) {
  for (const auto& [field, option] : kNames) {
    if (const std::size_t at = message.find(field); at != std::string::npos) {
      message.replace(at, field.size(), option);
    }
  }
  for (const std::string_view advice : kAdvice) {
    if (const std::size_t at = message.find(advice); at != std::string::npos) {
      return message.substr(0, at) + way_to_go_on(options);
    }
  }
  return message;
}

}  // namespace

Error told_error(const Error& error, const TrainOptions& options) {
  Error told(error.code(), told_text(error.message(), options));
  told.with(error.context());
  if (error.cause() != nullptr) {
    told.because(told_error(*error.cause(), options));
  }
  return told;
}

}  // namespace stagecraft::tools
