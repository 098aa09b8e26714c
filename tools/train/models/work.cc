#include "stagecraft/tools/train/models/work.h"

#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/models/file_work.h"

namespace stagecraft::tools {

Program compile_in(Precision precision, Work& work, const ScheduleChoice& choice) {
  const AutocastGuard autocast;
  AutocastGuard::set({.enabled = precision == Precision::BFloat16, .dtype = at::kBFloat16});
  return work.compile(choice);
}

std::unique_ptr<Work> open_work(const TrainOptions& options, double most) {
  if (options.model_file) {
    return std::make_unique<FileWork>(options, most);
  }
  return find_model(options.model).open(options, most);
}

}  // namespace stagecraft::tools
