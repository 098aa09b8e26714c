#include "stagecraft/tools/train/run/run_checkpoints.h"

#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Trains a layer and keeps its checkpoints.
struct KeptRun {
  void step_to(std::int64_t step) {
    while (trainer.steps() < step) {
      (void)trainer.step(x, x).get();
    }
  }
  void save_at(std::int64_t step) {
    step_to(step);
    kept.save_now(trainer);
  }
  /// Returns the step of the newest whole checkpoint; -1 if there is none.
  std::int64_t newest() {
    const auto file = kept.newest();
    return file == nullptr ? -1 : file->header().step;
  }
  [[nodiscard]] std::string path(std::int64_t step) const {
    return fmt::format("{}/step-{:09}.ckpt", folder.path(), step);
  }
  void damage(std::int64_t step) const {
    std::filesystem::resize_file(path(step), std::filesystem::file_size(path(step)) / 2);
  }

  const stagecraft::tests::TemporaryFolder folder;
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  RunOutput output{console};
  const std::unique_ptr<Progress> progress = make_progress(ProgressForm::JsonLines, output);
  const at::Tensor x = torch::ones({2, 3});
  Trainer trainer{compile(torch::nn::Linear(3, 3),
                          {.inputs = {x}, .labels = {x}, .loss = torch::nn::MSELoss()}),
                  "gpipe",
                  AdamW{.lr = 1e-2}};
  RunCheckpoints kept{{.save_dir = folder.path(), .save_every = 2, .keep = 3}, {}, *progress};
};

}  // namespace

TEST_CASE("a run goes back to its newest whole checkpoint, and saves broken ones again",
          "[tools][restarts][keeping]") {
  KeptRun run;
  CHECK(run.newest() == -1);
  run.save_at(2);
  run.save_at(4);
  run.save_at(6);
  CHECK(run.newest() == 6);
  CHECK_THAT(run.out.str(), !ContainsSubstring("passed_over"));
  run.damage(6);
  run.damage(4);
  CHECK(run.newest() == 2);
  for (const int step : {6, 4}) {
    CHECK_THAT(
        run.out.str(),
        ContainsSubstring(fmt::format(R"("event":"passed_over","file":"{}")", run.path(step))));
  }
  run.trainer.load(run.path(2));
  run.step_to(4);
  run.kept.after_step(run.trainer);
  CHECK(run.newest() == 4);
}

TEST_CASE("steps that are repeated take no place of a newer checkpoint",
          "[tools][restarts][keeping]") {
  KeptRun run;
  run.save_at(2);
  run.save_at(4);
  run.trainer.load(run.path(2));
  run.step_to(3);
  run.kept.save_now(run.trainer);  // as a watcher asks
  CHECK(run.newest() == 4);
  std::filesystem::remove(run.path(3));
  run.kept.close(run.trainer);
  CHECK_FALSE(std::filesystem::exists(run.path(3)));
  CHECK(run.newest() == 4);
}

TEST_CASE("a run whose save failed ends well if a later one is good", "[tools][keeping]") {
  KeptRun run;
  const auto obstruct = [&](std::int64_t step) {
    std::filesystem::create_directory(run.path(step));
  };
  obstruct(2);
  obstruct(4);
  run.save_at(2);
  run.save_at(4);
  run.save_at(6);
  CHECK_NOTHROW(run.kept.close(run.trainer));
  for (const int step : {2, 4}) {
    CHECK_THAT(run.out.str(),
               ContainsSubstring(fmt::format(R"("event":"not_saved","step":{},)", step)));
  }
  CHECK(run.newest() == 6);
  obstruct(7);
  run.step_to(7);
  CHECK_THROWS_WITH(run.kept.close(run.trainer), ContainsSubstring(run.path(7)));
  std::filesystem::remove(run.path(7));
  CHECK_NOTHROW(run.kept.close(run.trainer));
  CHECK(run.newest() == 7);
}

}  // namespace stagecraft::tools
