#include "stagecraft/actors/executor/commit/non_finite.h"

#include <limits>

#include "stagecraft/actors/executor/run/rank_programs.h"
#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the refusal of what the vote found.
Error refusal_of_vote(const std::vector<StageRuntime>& stages, const VoteResult& verdict) {
  try {
    refuse_non_finite(stages, verdict, Step(4));
  } catch (const Error& error) {
    return error;
  }
  return {Errc::Internal, "it was accepted"};
}

TEST_CASE("the rank that has a gradient that is not finite names the parameter",
          "[executor][commit]") {
  const testing::SmallChain chain = testing::small_chain(2);
  testing::OneRank rank(chain.program,
                        Schedule::parse("@form list\n0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n"));
  std::vector<StageRuntime>& stages = rank.programs.trained();
  CHECK_NOTHROW(refuse_non_finite(stages, {}, Step(4)));

  const std::int64_t position = stages[1].program->parameters[0].position;
  const Error here = refusal_of_vote(stages,
                                     {.all_finite = false,
                                      .first_non_finite_parameter = position,
                                      .first_non_finite_rank = Rank(0)});
  CHECK(here.code() == Errc::NonFinite);
  CHECK_THAT(here.message(), ContainsSubstring(stages[1].program->parameters[0].name));
  CHECK(here.context().stage == stages[1].program->id);
  CHECK(here.context().step == Step(4));

  const Error elsewhere = refusal_of_vote(
      stages,
      {.all_finite = false, .first_non_finite_parameter = 99, .first_non_finite_rank = Rank(5)});
  CHECK_THAT(elsewhere.message(), ContainsSubstring("a gradient is not finite"));
  CHECK(elsewhere.context().rank == Rank(5));
  CHECK_FALSE(elsewhere.context().stage.has_value());
}

TEST_CASE("a gradient whose square alone is too large is told apart", "[executor][commit]") {
  const testing::SmallChain chain = testing::small_chain(2);
  testing::OneRank rank(chain.program,
                        Schedule::parse("@form list\n0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n"));
  std::vector<StageRuntime>& stages = rank.programs.trained();
  const StageParameter& parameter = stages[1].program->parameters[0];
  const auto told = [&](double gradient) {
    stages[1].buckets.gradient(parameter.name).fill_(gradient);
    return refusal_of_vote(stages,
                           {.all_finite = false, .first_non_finite_parameter = parameter.position})
        .message();
  };
  CHECK_THAT(told(1e25),
             ContainsSubstring(parameter.name + " is finite, but its square is too large for"));
  CHECK_THAT(told(std::numeric_limits<double>::infinity()),
             ContainsSubstring(parameter.name + " is not finite"));
}

}  // namespace
}  // namespace stagecraft
