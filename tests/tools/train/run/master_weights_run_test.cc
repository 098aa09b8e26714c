/// Tests `train --master-weights`: a model file with weights in bfloat16 trains through masters, is
/// verified and billed, and other models are refused.
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>

#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tests/compiler/import/made_script.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Writes a model of two layers in bfloat16 whose weights are 1, and its data.
class HalfModel {
 public:
  HalfModel() : model_(folder_.path() + "/half.pt"), data_(folder_.path() + "/data") {
    const auto ones = [](std::int64_t rows, std::int64_t columns) {
      return at::ones({rows, columns}, at::kBFloat16).requires_grad_(true);
    };
    testing::save_script(
        model_,
        "def forward(self, x, y):\n"
        "  return (x.type_as(self.w).matmul(self.w).matmul(self.v) - y).square().mean()\n",
        {{"w", ones(32, 64)}, {"v", ones(64, 32)}});
    std::filesystem::create_directory(data_);
    const at::Tensor x = at::arange(64 * 32, at::kFloat).view({64, 32}).div(2048);
    write_npy(data_ + "/a_arg0.npy", x);
    write_npy(data_ + "/a_arg1.npy", x.square());
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  /// Returns the words of a training with these options.
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& more) const {
    std::vector<std::string> all{STAGECRAFT_COMMAND, "train", "--model-file", model_};
    all.insert(all.end(), {"--data", data_, "--microbatch-size", "4", "--lr", "1e-4"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

 private:
  const TemporaryFolder folder_;
  const std::string model_, data_;
};

TEST_CASE("a model file in bfloat16 learns through masters what it loses without",
          "[tools][train][model-file][masters]") {
  const HalfModel model;
  const auto moved = [&](std::vector<std::string> more) {
    const std::string weights = model.path("weights.safetensors");
    more.insert(more.end(), {"--stages", "2", "--steps", "30", "--save-weights", weights});
    const TrainOutput output = train_output(model.words(more));
    const at::Tensor w = read_weights(weights).at(0).tensor;
    CHECK(w.scalar_type() == at::kBFloat16);
    return !at::equal(w, at::ones_like(w));
  };
  CHECK_FALSE(moved({}));
  CHECK(moved({"--master-weights"}));
}

TEST_CASE("training with masters is verified, whatever copies share",
          "[tools][train][model-file][masters]") {
  const HalfModel model;
  const TrainOutput chain = train_output(model.words(
      {"--master-weights", "--stages", "2", "--steps", "3", "--average", "0.9", "--verify"}));
  CHECK(chain.verify.at("bit_equal") == true);
  for (const char* level : {"0", "1", "2", "3"}) {
    CAPTURE(level);
    const TrainOutput copies = train_output(model.words({"--master-weights",
                                                         "--ranks",
                                                         "4",
                                                         "--stages",
                                                         "2",
                                                         "--dp",
                                                         "2",
                                                         "--zero",
                                                         level,
                                                         "--steps",
                                                         "3",
                                                         "--verify"}));
    CHECK(
        (copies.verify.at("bit_equal") == true || copies.verify.at("bit_equal_as_ranks") == true));
  }
}

TEST_CASE("a run with masters goes on from its checkpoints alone",
          "[tools][train][model-file][masters]") {
  const HalfModel model;
  const std::string saved = model.path("a.ckpt");
  const auto words = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = model.words({"--stages", "2", "--master-weights"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  (void)train_output(words({"--steps", "2", "--save", saved}));
  const TrainOutput rest = train_output(words({"--steps", "4", "--load", saved, "--verify"}));
  CHECK(rest.verify.at("bit_equal") == true);
  CHECK(rest.sha256() == train_output(words({"--steps", "4"})).sha256());
  const CommandResult without =
      run_here(model.words({"--stages", "2", "--steps", "4", "--load", saved}));
  CHECK(without.exit_code == 2);
  CHECK_THAT(without.err,
             ContainsSubstring("the checkpoint has the masters of weights") &&
                 ContainsSubstring("set --master-weights as it was"));
}

TEST_CASE("the bill of a dry run has masters, and state as wide",
          "[tools][train][model-file][masters][memory]") {
  const HalfModel model;
  const auto bill = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--stages", "1", "--dry-run", "--json"});
    const CommandResult result = run_here(model.words(more));
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json with = bill({"--master-weights"}), without = bill({});
  constexpr std::int64_t kElements = 2 * 32 * 64;
  CHECK(without["ranks"][0]["state_bytes"] == 2 * 2 * kElements);
  CHECK(with["ranks"][0]["state_bytes"] == 3 * 4 * kElements);
  CHECK(with["ranks"][0]["weight_bytes"] == 2 * kElements);
  const nlohmann::json shared =
      bill({"--master-weights", "--ranks", "2", "--dp", "2", "--zero", "1"});
  CHECK(shared["ranks"][1]["state_bytes"] == 3 * 4 * kElements / 2);
  CHECK_THAT(with.dump(), ContainsSubstring("2 optimizer states, masters of all ranks"));
  // A run holds them, and a save the state of a stage on its way.
  CHECK(with["memory"]["to_run_bytes"].get<double>() -
            without["memory"]["to_run_bytes"].get<double>() >=
        (3 * 4 - 2 * 2) * kElements);
}

TEST_CASE("masters of a model in float32 are refused by the name of the option",
          "[tools][train][masters][bad-input]") {
  for (const char* precision : {"fp32", "bf16"}) {
    const CommandResult refused = run_train({"--master-weights", "--precision", precision});
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err,
               ContainsSubstring("--master-weights keeps float32 copies") &&
                   ContainsSubstring("leave it out"));
  }
}

}  // namespace
}  // namespace stagecraft::tests
