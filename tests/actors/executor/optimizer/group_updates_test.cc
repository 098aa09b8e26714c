#include "stagecraft/actors/executor/optimizer/group_updates.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Numbers = std::vector<std::int64_t>;

const std::vector<std::string> kNames{"a.weight", "b.weight", "c.weight"};
const std::vector<ParameterGroup> kFreezable{
    {.match = "a.*", .frozen_for = 2}, {.match = "b.*"}, {.match = "c.*", .frozen = true}};

/// Makes the next update.
Numbers update_of(GroupUpdates& groups, std::int64_t made, const GroupFreezes& set = {}) {
  Numbers numbers = groups.begin(made, set);
  groups.end(made);
  return numbers;
}

TEST_CASE("GU-1, GU-2: groups count the updates in which they train", "[executor][groups]") {
  GroupUpdates groups(kFreezable, kNames);
  CHECK(update_of(groups, 0) == Numbers{0, 1, 0});
  CHECK(update_of(groups, 1, {false, std::nullopt}) == Numbers{1, 2, 0});  // over frozen_for
  CHECK(update_of(groups, 2, {std::nullopt, true}) == Numbers{2, 0, 0});
  CHECK(update_of(groups, 3, {std::nullopt, true}) == Numbers{3, 0, 0});
  CHECK(update_of(groups, 4, {true, false}) == Numbers{0, 3, 0});
  CHECK(update_of(groups, 5) == Numbers{4, 4, 0});
  CHECK(groups.frozen(6) == FrozenUpdates{{"a.*", 2}, {"b.*", 2}, {"c.*", 6}});
  CHECK(groups.frozen(3) == FrozenUpdates{{"a.*", 1}, {"b.*", 1}, {"c.*", 3}});

  // An update that was begun in vain does not count.
  CHECK(groups.begin(6, {true}) == Numbers{0, 5, 0});
  CHECK(update_of(groups, 6) == Numbers{5, 5, 0});

  groups.go_back(3);
  CHECK(update_of(groups, 3) == Numbers{3, 3, 0});
  CHECK(groups.frozen(4) == FrozenUpdates{{"a.*", 1}, {"b.*", 1}, {"c.*", 4}});
}

TEST_CASE("a run that continues counts on, and by frozen_for if nothing was counted",
          "[executor][groups]") {
  GroupUpdates groups(kFreezable, kNames);
  groups.replace(10, FrozenUpdates{{"b.*", 4}, {"of another run", 3}});
  CHECK(update_of(groups, 10) == Numbers{11, 7, 0});
  CHECK(groups.frozen(11) == FrozenUpdates{{"b.*", 4}, {"c.*", 1}});
  groups.replace(10, std::nullopt);
  CHECK(update_of(groups, 10) == Numbers{9, 11, 0});
  groups.replace(1, std::nullopt);
  CHECK(update_of(groups, 1) == Numbers{0, 2, 0});
  CHECK(update_of(groups, 2) == Numbers{1, 3, 0});
  GroupUpdates none;
  none.replace(10, FrozenUpdates{{"b.*", 4}});
  CHECK(update_of(none, 10).empty());
  CHECK(none.frozen(11).empty());

  CHECK(is_possible(FrozenUpdates{{"a", 0}, {"b", 3}}, 3));
  CHECK_FALSE(is_possible(FrozenUpdates{{"a", 0}, {"b", 4}}, 3));
  CHECK_FALSE(is_possible(FrozenUpdates{{"a", -1}}, 3));
}

TEST_CASE("groups that change in every update are counted, and only late changes are kept",
          "[executor][groups]") {
  GroupUpdates groups({{.match = "a.*"}, {.match = "b.*"}}, kNames);
  constexpr std::int64_t kUpdates = 3000;
  for (std::int64_t made = 0; made < kUpdates; ++made) {
    (void)update_of(groups, made, {made % 2 == 0, made % 2 != 0});
  }
  CHECK(groups.frozen(kUpdates) == FrozenUpdates{{"a.*", 1500}, {"b.*", 1500}});
  groups.go_back(kUpdates - 501);
  CHECK(groups.frozen(kUpdates - 501) == FrozenUpdates{{"a.*", 1250}, {"b.*", 1249}});
  CHECK_THAT(refusal([&] { groups.go_back(1000); }, Errc::Internal),
             ContainsSubstring("so far back"));
}

TEST_CASE("an update in which every parameter is frozen is refused", "[executor][groups]") {
  GroupUpdates groups(kFreezable, kNames);
  const auto begin = [&](const GroupFreezes& set) { (void)groups.begin(0, set); };
  CHECK_THAT(refusal([&] {
               begin({std::nullopt, true});
             }),
             ContainsSubstring("freeze every parameter"));
  CHECK_NOTHROW(begin({false, true}));
  GroupUpdates with_others(kFreezable, {"a.weight", "b.weight", "c.weight", "d.weight"});
  CHECK(with_others.begin(0, {std::nullopt, true}) == Numbers{0, 0, 0});
}

TEST_CASE("a group that cannot be frozen or thawed is refused, with near names",
          "[executor][groups]") {
  CHECK(group_to_freeze(kFreezable, "b.*", true) == 1);
  CHECK(group_to_freeze(kFreezable, "c.*", std::nullopt) == 2);
  CHECK_THAT(refusal([] { (void)group_to_freeze(kFreezable, "b*", true); }),
             ContainsSubstring("no parameter group has the match \"b*\"") &&
                 ContainsSubstring("did you mean b.*?"));
  CHECK_THAT(refusal([] { (void)group_to_freeze({}, "b", true); }),
             ContainsSubstring("no parameter group"));
  CHECK_THAT(refusal([] { (void)group_to_freeze(kFreezable, "c.*", false); }),
             ContainsSubstring("has no optimizer state"));
}

}  // namespace
}  // namespace stagecraft
