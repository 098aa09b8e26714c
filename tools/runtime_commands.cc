#include "stagecraft/tools/runtime_commands.h"

#include <string_view>
#include <utility>

#include "stagecraft/compiler/libtorch/lack_of_memory.h"
#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/dag/model/show_model.h"
#include "stagecraft/tools/doctor/doctor.h"
#include "stagecraft/tools/eval/eval.h"
#include "stagecraft/tools/eval/predict.h"
#include "stagecraft/tools/guarded.h"
#include "stagecraft/tools/import/import.h"
#include "stagecraft/tools/launch/launch.h"
#include "stagecraft/tools/profile/profile.h"
#include "stagecraft/tools/runtime_words.h"
#include "stagecraft/tools/train/run/local_work.h"
#include "stagecraft/tools/train/train.h"
#include "stagecraft/tools/worker/worker.h"

namespace stagecraft::tools {
namespace {

SubCommand command(std::string_view word, decltype(SubCommand::run) run, const char* appetite) {
  return {word, "", about(word), thrifty(std::move(run), appetite, &lack_of_memory)};
}

ExitCode dispatch(const std::vector<std::string>& words, Console& console) {
  const CommandGroup group{
      .command = "stagecraft",
      .about =
          "The commands of Stagecraft that use LibTorch; `stagecraft --help` lists all commands.",
      .commands =
          {command("train",
                   &train,
                   "--dim, --ffn or --layers (weights), --microbatch-size, --microbatches or --seq "
                   "(memory of a step); the microbatches of a model from a file; or leave out "
                   "--verify. --force runs what seems too large"),
           command("eval",
                   &evaluate_model,
                   "--dim, --ffn or --layers (weights), --microbatch-size, --microbatches or --seq "
                   "(memory of a batch); or the microbatches of a model from a file"),
           command("predict", &predict_model, "the microbatches; or write a folder with --output"),
           command("import", &import_model, "the model, or the data of --inputs"),
           command("profile", &profile_model, "--microbatch-sizes, or the model"),
           command("doctor", &doctor, "--hosts"),
           command("launch", &launch, "its program"),
           command("worker", &worker, "its driver's program"),
           {"dag",
            "",
            "show the computation and communication of a strategy, with a model",
            thrifty(&dag_of_models,
                    "--dim, --ffn or --layers (weights), or the microbatches",
                    &lack_of_memory)}},
      .notes = ""};
  return run_sub_command(group, words, console);
}

}  // namespace

ExitCode run_runtime_command(const std::vector<std::string>& words, Console& console) {
  register_local_work();  // workers need it too
  return guarded([&] { return dispatch(words, console); }, console);
}

}  // namespace stagecraft::tools
