#include "stagecraft/actors/executor/run/order_check.h"

#include <cmath>
#include <limits>

#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::OneRank;

struct OrderedRank {
  testing::SmallChain chain = testing::small_chain(1);
  Schedule schedule = Schedule::parse("@form list\n0F0 0F1 0B0 0B1\n");
  OneRank rank{chain.program, schedule};

  OrderedRank() {
    const auto forwards = std::make_shared<const Plan>(
        lower_schedule(chain.program, schedule, Layout::of(schedule), /*training=*/false));
    rank.programs.add(testing::forwards_only(chain.program, forwards, rank.setup.train));
  }

  void check(const StepOrder& order, std::int32_t accumulated = 0) const {
    check_order(order, rank.setup, rank.programs, accumulated);
  }
  [[nodiscard]] std::string refused(const StepOrder& order, std::int32_t accumulated = 0) const {
    return refusal([&] { check(order, accumulated); }, Errc::PlanInvalid);
  }
};

TEST_CASE("an order for what the rank knows is accepted", "[executor][order]") {
  const OrderedRank f;
  CHECK_NOTHROW(f.check({}));
  CHECK_NOTHROW(f.check({.parts = {{.count = 2, .weight = 0.5}}}));
  CHECK_NOTHROW(f.check({.parts = {{.count = 1}, {.count = 1, .weight = 3.0}}}));
  CHECK_NOTHROW(f.check({.program = testing::kForwardsOnly}));
}

TEST_CASE("an order for another program or shape is refused", "[executor][order]") {
  const OrderedRank f;
  CHECK_THAT(f.refused({.program = 7}), ContainsSubstring("was not told of"));
  CHECK_THAT(f.refused({.parts = {{.count = 2, .shape = 1}}}),
             ContainsSubstring("was not told of"));
  const Error error = [&] {
    try {
      f.check({.step = Step(5), .program = 7});
    } catch (const Error& e) {
      return e;
    }
    return Error(Errc::Internal, "");
  }();
  CHECK(error.context().rank == Rank(0));
  CHECK(error.context().step == Step(5));
}

TEST_CASE("runs that are not the plan's microbatches are refused", "[executor][order]") {
  const OrderedRank f;
  const auto inf = std::numeric_limits<double>::infinity();
  for (const PartRuns& runs : {PartRuns{{.count = 1}},
                               PartRuns{{.count = 3}},
                               PartRuns{{.count = 3}, {.count = -1}},
                               PartRuns{{.count = 2}, {.count = 0}}}) {
    CHECK_THAT(f.refused({.parts = runs}), ContainsSubstring("are not the 2 of the plan"));
  }
  for (const double weight : {0.0, -1.0, inf, std::nan("")}) {
    CHECK_THAT(f.refused({.parts = {{.count = 2, .weight = weight}}}),
               ContainsSubstring("weights that no mean can have"));
  }
}

TEST_CASE("an evaluation may leave a microbatch out, training may not", "[executor][order]") {
  const OrderedRank f;
  const PartRuns runs{{.count = 1}, {.count = 1, .weight = 0.0}};
  CHECK_NOTHROW(f.check({.program = testing::kForwardsOnly, .parts = runs}));
  (void)f.refused({.parts = runs});
}

TEST_CASE("AC-1: a batch follows the batches that the rank keeps, or begins an update",
          "[executor][order]") {
  const OrderedRank f;
  CHECK_NOTHROW(f.check({.accumulated = 2}, 2));
  CHECK_NOTHROW(f.check({.accumulated = 0}, 2));
  CHECK_THAT(f.refused({.accumulated = 1}, 2),
             ContainsSubstring("after 1 others of its update") &&
                 ContainsSubstring("keeps the gradients of 2"));
}

TEST_CASE("PG-3: numbers of groups are those of the rank's groups, in updates that can be",
          "[executor][order]") {
  OrderedRank f;
  f.rank.setup.options.groups = {{.match = "a"}, {.match = "b"}};
  CHECK_NOTHROW(f.check({.step = Step(3)}));
  CHECK_NOTHROW(f.check({.step = Step(3), .group_numbers = {0, 4}}));
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{1}, {1, 2, 3}, {0, 5}, {-1, 2}}) {
    CHECK_THAT(f.refused({.step = Step(3), .group_numbers = wrong}),
               ContainsSubstring("updates of parameter groups"));
  }
}

}  // namespace
}  // namespace stagecraft
