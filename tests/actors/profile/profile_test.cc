/// Tests a profile as planners get it, and that a second measurement measures nothing.
#include "stagecraft/actors/profile/profile.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/planners/request/work_graph.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::TemporaryFolder;

constexpr int kProfiledWidth = 8;

struct Profiled {
  TemporaryFolder folder;
  torch::Tensor x = torch::randn({8, kProfiledWidth});
  std::shared_ptr<testing::Chain> net = std::make_shared<testing::Chain>(2, kProfiledWidth);
  Program program =
      compile(net, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2});

  [[nodiscard]] ProfileOptions options(std::vector<int> sizes = {}) const {
    // One repeat has no noise.
    return {.microbatch_sizes = std::move(sizes), .repeats = 1, .cache = folder.path() + "/kept"};
  }
  [[nodiscard]] Profile measured(const ProfileOptions& options) const {
    return profile(program, {x}, {x}, options);
  }
  [[nodiscard]] std::string refused(const ProfileOptions& options, Errc code) const {
    return refusal([&] { (void)measured(options); }, code);
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/kept")) {
      all.push_back(entry.path().string());
    }
    return all;
  }
};

TEST_CASE("a profile has all that planners read, on every size", "[profile]") {
  const Profiled profiled;
  const Costs costs = profiled.measured(profiled.options({4, 1, 8})).costs;
  CHECK(costs.samples == 4);
  CHECK(costs.device.threads == 1);
  CHECK_FALSE(costs.device.name.empty());
  REQUIRE(costs.operators_at.size() == 2);
  CHECK(costs.operators_at.at(8).size() == costs.operators.size());
  const auto tanh = std::ranges::find(costs.operators, "aten::tanh", &OperatorCost::name);
  REQUIRE(tanh != costs.operators.end());
  const OperatorCost& of_one = costs.operators_at.at(1)[static_cast<std::size_t>(tanh->id)];
  CHECK(of_one.output * 4 == tanh->output);
  CHECK(of_one.reads.empty());  // listed once
  CHECK(tanh->reads.size() == 1);
  REQUIRE(costs.parameters.size() == 4);
  CHECK(costs.parameters[0].name == "layer0.weight");
  CHECK(costs.parameters[0].held ==
        4 * kProfiledWidth * kProfiledWidth * sizeof(float));  // of AdamW
  double update = 0, weight = 0;
  for (const OperatorCost& cost : costs.operators) {
    CHECK(cost.forward > 0);
    update += cost.update;
    weight += cost.backward_weight;
  }
  CHECK(update > 0);
  CHECK(weight > 0);
  CHECK(costs.links.usual.latency > 0);
  const WorkGraph graph = WorkGraph::of(costs, 8);
  CHECK(graph.preds(1).size() == 1);
}

TEST_CASE("what is known is not measured again (PRF-1)", "[profile]") {
  const Profiled profiled;
  const Profile first = profiled.measured(profiled.options());
  CHECK(first.measured == 3);  // the model, the link, and the time outside of operators
  const Profile second = profiled.measured(profiled.options());
  CHECK(second.measured == 0);
  CHECK(second.costs == first.costs);
  CHECK(second.microbatch_seconds == first.microbatch_seconds);
  CHECK(second.notes.empty());

  CHECK(profiled.measured(profiled.options({4, 2})).measured == 1);
  ProfileOptions threads = profiled.options();
  threads.threads = 2;
  CHECK(profiled.measured(threads).measured == 1);
  ProfileOptions sgd = profiled.options();
  sgd.optimizer = Sgd{};
  CHECK(profiled.measured(sgd).measured == 1);
  ProfileOptions processes = profiled.options();
  processes.ranks = RankHomes::Processes;
  CHECK(profiled.measured(processes).measured == 1);
  ProfileOptions fresh = profiled.options();
  fresh.fresh = true;
  CHECK(profiled.measured(fresh).measured == 3);
  ProfileOptions nowhere = profiled.options();
  nowhere.cache = "";
  CHECK(profiled.measured(nowhere).measured == 3);
}

TEST_CASE("what is too noisy is measured again, told and not kept (PRF-4)", "[profile]") {
  const Profiled profiled;
  ProfileOptions options = profiled.options();
  options.repeats = 5;
  options.most_noise = -1;  // below the noise of any measurement
  std::vector<std::string> told;
  options.progress = [&](std::string_view what, int, int) { told.emplace_back(what); };
  const Profile first = profiled.measured(options);
  REQUIRE(first.notes.size() == 1);
  CHECK_THAT(first.notes[0],
             ContainsSubstring("microbatches of 4 samples were measured 3 times") &&
                 ContainsSubstring("not kept"));
  CHECK(std::ranges::count_if(told, [](const std::string& what) {
          return what.find("again, as the noise was") != std::string::npos;
        }) == kMostTries - 1);
  CHECK(profiled.files().size() == 2);  // the link, and the time outside of operators
  CHECK(profiled.measured(options).measured == 1);
  options.most_noise = std::numeric_limits<double>::infinity();
  CHECK(profiled.measured(options).notes.empty());
  CHECK(profiled.files().size() == 3);
  CHECK(profiled.measured(options).measured == 0);
}

TEST_CASE("a broken file is measured again, with a note", "[profile]") {
  const Profiled profiled;
  (void)profiled.measured(profiled.options());
  const std::string content = GENERATE("{\"version\": 1, \"oper", "{\"version\": 1}");
  for (const std::string& file : profiled.files()) {
    std::ofstream(file) << content;
  }
  const Profile found = profiled.measured(profiled.options());
  CHECK(found.measured == 3);
  REQUIRE(found.notes.size() == 3);
  CHECK_THAT(found.notes[0], ContainsSubstring("measured again"));
  CHECK(profiled.measured(profiled.options()).measured == 0);
}

TEST_CASE("progress is told before each part", "[profile]") {
  const Profiled profiled;
  ProfileOptions options = profiled.options({1, 4});
  std::vector<std::string> told;
  options.progress = [&](std::string_view what, int place, int all) {
    told.push_back(std::to_string(place) + "/" + std::to_string(all) + " " + std::string(what));
  };
  (void)profiled.measured(options);
  CHECK(told == std::vector<std::string>{"1/3 microbatches of 1 sample",
                                         "2/3 microbatches of 4 samples",
                                         "3/3 transfers between ranks"});
}

TEST_CASE("profiling leaves program, module and batch as they were (PRF-3)", "[profile]") {
  const Profiled profiled;
  const auto x = profiled.x.clone();
  const auto weight = profiled.net->layers[0]->weight.detach().clone();
  (void)profiled.measured(profiled.options({2}));
  CHECK(torch::equal(profiled.x, x));
  CHECK(torch::equal(profiled.net->layers[0]->weight, weight));
  CHECK_FALSE(profiled.net->layers[0]->weight.grad().defined());
}

TEST_CASE("sizes that do not work are refused with what would do", "[profile][bad-input]") {
  const Profiled profiled;
  const auto refused = [&](std::vector<int> sizes) {
    return profiled.refused(profiled.options(std::move(sizes)), Errc::UsageArgument);
  };
  CHECK_THAT(refused({0}), ContainsSubstring("from 1 to 8"));
  CHECK_THAT(refused({4, 9}), ContainsSubstring("found 9"));
  CHECK_THAT(refused({4, 2, 4}), ContainsSubstring("4 appears twice"));
  ProfileOptions none = profiled.options();
  none.repeats = 0;
  CHECK_THAT(profiled.refused(none, Errc::UsageArgument), ContainsSubstring("one repeat"));
}

/// Computes something else with more rows.
struct ByRows : torch::nn::Module {
  torch::nn::Linear a{nullptr};
  ByRows() { a = register_module("a", torch::nn::Linear(kProfiledWidth, kProfiledWidth)); }
  torch::Tensor forward(torch::Tensor x) {
    return x.size(0) > 2 ? torch::tanh(a(x)) : torch::relu(a(x));
  }
};

TEST_CASE("other operators on another size are an error that names them (PRF-2)",
          "[profile][bad-input]") {
  const TemporaryFolder folder;
  const auto net = std::make_shared<ByRows>();
  const auto x = torch::randn({4, kProfiledWidth});
  const Program program =
      compile(net, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square});
  const std::string text = refusal(
      [&] {
        (void)profile(
            program, {x}, {x}, {.microbatch_sizes = {4, 2}, .repeats = 1, .cache = folder.path()});
      },
      Errc::CompileShape);
  CHECK_THAT(text, ContainsSubstring("aten::tanh and aten::relu"));
  CHECK_THAT(text, ContainsSubstring("4 and 2 samples"));
}

TEST_CASE("a cache that cannot be written is an error", "[profile][bad-input]") {
  const Profiled profiled;
  ProfileOptions options = profiled.options();
  options.cache = profiled.folder.write("file", "no folder") + "/kept";
  CHECK_THAT(profiled.refused(options, Errc::UsageFile), ContainsSubstring("XDG_CACHE_HOME"));
}

}  // namespace
}  // namespace stagecraft
