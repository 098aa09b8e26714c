/// What a rank is given is data: every field is listed, and none leads out of it.
#include "stagecraft/actors/executor/rank_setup.h"

#include <set>
#include <type_traits>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/replicate.h"
#include "stagecraft/scheduler/builders/chimera.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

template <class T>
constexpr bool is_id = false;
template <class Name, class Int>
constexpr bool is_id<StrongId<Name, Int>> = true;

template <class T>
consteval bool is_data();

template <class T>
constexpr bool is_container_of_data = false;
template <class T>
constexpr bool is_container_of_data<std::vector<T>> = is_data<T>();
template <class T>
constexpr bool is_container_of_data<std::optional<T>> = is_data<T>();
template <class K, class T>
constexpr bool is_container_of_data<std::map<K, T>> = is_data<K>() && is_data<T>();
template <class... T>
constexpr bool is_container_of_data<std::variant<T...>> = (is_data<T>() && ...);

/// Numbers, text, tensors (constants), literals of operators, and lists of fields of these. What is
/// of one process (RU-1) is let pass by its type.
template <class T>
consteval bool is_data() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || is_id<T> ||
                std::is_same_v<T, std::string> || std::is_same_v<T, at::Tensor> ||
                std::is_same_v<T, c10::IValue> || std::is_same_v<T, std::chrono::milliseconds> ||
                std::is_same_v<T, Attachment>) {
    return true;
  } else if constexpr (requires(T & t) { visit_fields(t, [](auto&...) {}); }) {
    using Fields = decltype(visit_fields(std::declval<T&>(), [](auto&... field) {
      return std::type_identity<std::tuple<std::remove_reference_t<decltype(field)>...>>{};
    }));
    return []<class... F>(std::type_identity<std::tuple<F...>>) {
      return (is_data<F>() && ...);
    }(Fields{});
  } else {
    return is_container_of_data<T>;
  }
}

TEST_CASE("RU-1: what a rank is given is data, down to the operands of an operator",
          "[executor][setup]") {
  STATIC_CHECK(is_data<RankSetup>());
  STATIC_CHECK_FALSE(is_data<std::shared_ptr<const Plan>>());
  STATIC_CHECK_FALSE(is_data<std::function<void()>>());
  STATIC_CHECK_FALSE(is_data<const Plan*>());
}

/// The setups of all ranks.
std::vector<RankSetup> setups_of(const Program& given, const Schedule& schedule) {
  const Layout layout = Layout::of(schedule);
  const Program program = replicate(given, layout);
  const auto plan_of = [&](bool training) {
    return std::make_shared<const Plan>(lower_schedule(program, schedule, layout, training));
  };
  const Job job{.plan_id = PlanId(7),
                .program = program.shared(),
                .train = plan_of(true),
                .evaluate = plan_of(false),
                .optimizer = AdamW{},
                .options = {.seed = 3}};
  std::vector<RankSetup> setups;
  for (int r = 0; r < layout.ranks(); ++r) {
    setups.push_back(rank_setup(job, Rank(r)));
  }
  return setups;
}

Program chain(int stages) {
  testing::Chain module(stages);
  const auto x = torch::randn({4, 8});
  return compile(module,
                 {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 4});
}

TEST_CASE("SP-3: a rank's stages have the facts of what they name, and no others",
          "[executor][setup]") {
  const Program program = chain(4);
  for (const RankSetup& setup : setups_of(program, one_f_one_b(4, 4))) {
    CHECK(setup.plan_id == PlanId(7));
    CHECK(setup.options.seed == 3);
    CHECK(setup.ranks.size() == 4);
    CHECK(setup.model_parameters == 8);
    REQUIRE(setup.stages.size() == 1);
    const StageProgram& stage = setup.stages[0];
    CHECK(stage.id.value == setup.rank.value);
    std::set<ValueId> named;
    for (const Chunk& chunk : stage.chunks) {
      named.insert(chunk.inputs.begin(), chunk.inputs.end());
      named.insert(chunk.outputs.begin(), chunk.outputs.end());
      for (const Node& node : chunk.nodes) {
        const std::vector<ValueId> reads = reads_of(node);
        named.insert(reads.begin(), reads.end());
        named.insert(node.results.begin(), node.results.end());
      }
    }
    named.erase(kNoValue);
    std::set<ValueId> described;
    for (const auto& [id, value] : stage.values) {
      described.insert(id);
    }
    CHECK((described == named));
    CHECK(described.size() < program.compiled().graph.values.size());
    REQUIRE(stage.parameters.size() == 2);
    CHECK(stage.parameters[0].name == "layer" + std::to_string(setup.rank.value) + ".weight");
  }
}

TEST_CASE("ranks that hold two replicas' stages say so", "[executor][setup]") {
  for (const RankSetup& setup : setups_of(chain(2), chimera(2, 4))) {
    REQUIRE(setup.stages.size() == 2);
    CHECK(setup.stages[0].replica + setup.stages[1].replica == 1);
    CHECK(setup.replica_groups.size() == 2);
    CHECK(setup.microbatches == 4);
  }
}

}  // namespace
}  // namespace stagecraft
