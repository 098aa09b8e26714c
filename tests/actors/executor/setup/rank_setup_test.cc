/// Checks that a rank is given only data: every field is listed, and no field leads out of it.
#include "stagecraft/actors/executor/setup/rank_setup.h"

#include <set>
#include <type_traits>

#include <torch/torch.h>

#include "stagecraft/actors/executor/setup/rank_shape.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
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
template <class T>
constexpr bool is_container_of_data<std::shared_ptr<const T>> = is_data<T>();
template <class K, class T>
constexpr bool is_container_of_data<std::map<K, T>> = is_data<K>() && is_data<T>();
template <class... T>
constexpr bool is_container_of_data<std::variant<T...>> = (is_data<T>() && ...);

/// Accepts numbers, text, tensors (constants), literals of operators, and lists of fields of these.
/// Accepts fields of one process (RU-1) by their type.
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

// ---- every field is listed ----------------------------------------------------------------------

/// Counts fields that are not listed, because they exist in one process alone.
template <class T>
constexpr std::size_t kUnlisted = 0;
template <>
constexpr std::size_t kUnlisted<TrainerOptions> = 4;  // OP-1: before_instruction, on_column ...
template <>
constexpr std::size_t kUnlisted<LearningRate> = 1;  // LR-1: of_step
template <>
constexpr std::size_t kUnlisted<CustomOptimizer> = 1;  // OZ-1: update

/// Takes a record apart into `Count` fields, which compiles only for the right number. A new field
/// fails to compile here until `visit_fields` lists it. Returns the place of each field.
template <std::size_t Count, class T>
std::vector<const void*> places_of(T& r) {
  const auto places = [](const auto&... field) {
    return std::vector<const void*>{static_cast<const void*>(&field)...};
  };
  if constexpr (Count == 2) {
    auto& [a, b] = r;
    return places(a, b);
  } else if constexpr (Count == 3) {
    auto& [a, b, c] = r;
    return places(a, b, c);
  } else if constexpr (Count == 4) {
    auto& [a, b, c, d] = r;
    return places(a, b, c, d);
  } else if constexpr (Count == 5) {
    auto& [a, b, c, d, e] = r;
    return places(a, b, c, d, e);
  } else if constexpr (Count == 6) {
    auto& [a, b, c, d, e, f] = r;
    return places(a, b, c, d, e, f);
  } else if constexpr (Count == 7) {
    auto& [a, b, c, d, e, f, g] = r;
    return places(a, b, c, d, e, f, g);
  } else if constexpr (Count == 8) {
    auto& [a, b, c, d, e, f, g, h] = r;
    return places(a, b, c, d, e, f, g, h);
  } else if constexpr (Count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = r;
    return places(a, b, c, d, e, f, g, h, i);
  } else if constexpr (Count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = r;
    return places(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (Count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (Count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (Count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (Count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (Count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (Count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (Count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (Count == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, last] = r;
    return places(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, last);
  } else if constexpr (Count == 29) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, s, t, u, v, w, x, y, z, A, B, C, D] =
        r;
    return places(
        a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, s, t, u, v, w, x, y, z, A, B, C, D);
  } else {
    static_assert(Count == 0, "no record has so many fields yet: add a branch");
    static_assert(std::is_empty_v<T>);
    return {};
  }
}

template <class T>
void check_lists(std::type_identity<T>);
template <class T>
void check_lists(std::type_identity<std::vector<T>>);
template <class T>
void check_lists(std::type_identity<std::shared_ptr<const T>>);
template <class K, class T>
void check_lists(std::type_identity<std::map<K, T>>);
template <class... T>
void check_lists(std::type_identity<std::variant<T...>>);

/// Returns whether the record and all that it holds list their fields, each once and in their
/// order.
template <class T>
void check_lists(std::type_identity<T>) {
  if constexpr (requires(T & t) { visit_fields(t, [](auto&...) {}); }) {
    T record{};
    visit_fields(record, [&](auto&... field) {
      std::vector<const void*> all = places_of<sizeof...(field) + kUnlisted<T>>(record);
      all.resize(sizeof...(field));
      CHECK(all == std::vector<const void*>{static_cast<const void*>(&field)...});
      (check_lists(std::type_identity<std::remove_reference_t<decltype(field)>>{}), ...);
    });
  }
}
template <class T>
void check_lists(std::type_identity<std::vector<T>>) {
  check_lists(std::type_identity<T>{});
}
template <class T>
void check_lists(std::type_identity<std::shared_ptr<const T>>) {
  check_lists(std::type_identity<T>{});
}
template <class K, class T>
void check_lists(std::type_identity<std::map<K, T>>) {
  check_lists(std::type_identity<T>{});
}
template <class... T>
void check_lists(std::type_identity<std::variant<T...>>) {
  (check_lists(std::type_identity<T>{}), ...);
}

TEST_CASE("RU-1: every field of what a rank is given is listed", "[executor][setup]") {
  check_lists(std::type_identity<RankSetup>{});
  check_lists(std::type_identity<RankShape>{});
}

TEST_CASE("RU-1: what a rank is given is data, down to the operands of an operator",
          "[executor][setup]") {
  STATIC_CHECK(is_data<RankSetup>());
  STATIC_CHECK_FALSE(is_data<std::shared_ptr<RankList>>());  // others may change it
  STATIC_CHECK_FALSE(is_data<std::function<void()>>());
  STATIC_CHECK_FALSE(is_data<const Plan*>());
}

/// Returns the setups of all ranks.
std::vector<RankSetup> setups_of(const Program& program, const Schedule& schedule) {
  const Layout layout = Layout::of(schedule);
  const Job job{.plan_id = PlanId(7),
                .program = program.shared(),
                .train = std::make_shared<const Plan>(
                    lower_schedule(program, schedule, layout, /*training=*/true)),
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
    const StageProgram& stage = *setup.stages[0];
    CHECK(stage.id.value == setup.rank().value);
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
    CHECK(stage.parameters[0].name == "layer" + std::to_string(setup.rank().value) + ".weight");
  }
}

TEST_CASE("ranks that hold copies of two stages have the program's stages", "[executor][setup]") {
  const std::vector<RankSetup> setups = setups_of(chain(2), chimera(2, 4));
  for (const RankSetup& setup : setups) {
    REQUIRE(setup.stages.size() == 2);
    CHECK(setup.train.stage(0).copy + setup.train.stage(1).copy == 1);
    CHECK(setup.stages[0]->id == setup.train.stage(0).program);
    CHECK(setup.train.tables->groups.size() == 2);
    CHECK(setup.train.tables->microbatches == 4);
  }
  CHECK(setups[0].stages[0] == setups[1].stages[1]);  // one program for both
  CHECK(setups[0].train.tables == setups[1].train.tables);
}

TEST_CASE("LA-3: ranks of one place share their list", "[executor][setup]") {
  Schedule schedule = Schedule::parse("@place 0=0,1\n@form list\n0F0 0B0 0F1 0B1\n");
  testing::Chain module(1);
  const auto x = torch::randn({4, 8});
  const std::vector<RankSetup> setups = setups_of(
      compile(module,
              {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 4}),
      schedule);
  REQUIRE(setups.size() == 2);
  CHECK(setups[0].train.list == setups[1].train.list);
  CHECK(setups[0].train.rank.first_microbatch == 0);
  CHECK(setups[1].train.rank.first_microbatch == 2);
}

}  // namespace
}  // namespace stagecraft
