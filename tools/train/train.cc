#include "stagecraft/tools/train/train.h"

#include <iostream>
#include <variant>

#include "stagecraft/tools/train/dry_run.h"
#include "stagecraft/tools/train/job.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/run.h"

namespace stagecraft::tools {

ExitCode train(const std::vector<std::string>& arguments) {
  const auto parsed = parse_train_options(arguments);
  if (const auto* help = std::get_if<HelpText>(&parsed)) {
    std::cout << help->text;
    return ExitCode::Good;
  }
  const TrainJob job = make_job(std::get<TrainOptions>(parsed));
  if (job.options.dry_run) {
    std::cout << dry_run(job);
    return ExitCode::Good;
  }
  return TrainRun(job, std::cout).run();
}

}  // namespace stagecraft::tools
