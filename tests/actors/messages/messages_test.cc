#include "stagecraft/actors/messages/messages.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "stagecraft/actors/driver/driver.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/actors/messages/process_actors.h"
#include "stagecraft/actors/messages/process_messages.h"
#include "stagecraft/actors/messages/state_listing.h"
#include "stagecraft/actors/messages/timeline_tensor.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Between processes there is one more message, RankStarted (launch/port/control_port.h). It alone
/// holds handles of actors, because passing them is its purpose.
using AllMessageTypes =
    decltype(std::tuple_cat(std::declval<MessageTypes>(), std::declval<ProcessMessageTypes>()));

// ---- fields that a message may have -------------------------------------------------------------

template <class T>
constexpr bool is_id = false;
template <class Name, class Int>
constexpr bool is_id<StrongId<Name, Int>> = true;

template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = true;

/// Converts to any field type, so that `T{Any, Any, ...}` tells how many fields T has.
struct Any {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class T, class... Found>
constexpr std::size_t field_count() {
  if constexpr (requires { T{Found{}..., Any{}}; }) {
    return field_count<T, Found..., Any>();
  } else {
    return sizeof...(Found);
  }
}

template <class T>
consteval bool is_metadata();

/// Checks that every field is in the list, and that every listed field is metadata.
template <class T>
consteval bool has_metadata_fields() {
  using Fields = decltype(visit_fields(std::declval<T&>(), [](auto&... field) {
    return std::tuple<std::remove_reference_t<decltype(field)>...>{};
  }));
  return []<class... F>(std::type_identity<std::tuple<F...>>) {
    return sizeof...(F) == field_count<T>() && (is_metadata<F>() && ...);
  }(std::type_identity<Fields>{});
}

template <class T>
consteval bool is_metadata() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || is_id<T> ||
                std::is_same_v<T, std::string>) {
    return true;
  } else if constexpr (is_list<T>) {
    return is_metadata<typename T::value_type>();
  } else if constexpr (requires(T & t) { visit_fields(t, [](auto&...) {}); }) {
    return has_metadata_fields<T>();
  } else {
    return false;
  }
}

TEMPLATE_LIST_TEST_CASE("a message carries metadata only (MS-1)",
                        "[actors][messages]",
                        AllMessageTypes) {
  STATIC_CHECK(is_metadata<TestType>());
}

TEST_CASE("the message that brings a rank's handles lists all of its fields (MS-1)",
          "[actors][messages]") {
  RankStarted started;
  auto& [worker, error] = started;
  auto& [plan_thread, agent] = worker;
  const std::vector<const void*> all{&plan_thread, &agent, &error};
  CHECK((visit_fields(started,
                      [](auto&... field) { return std::vector<const void*>{&field...}; }) == all));
}

struct WithTensor {
  Rank rank;
  at::Tensor tensor;
};
template <class V>
decltype(auto) visit_fields(WithTensor& m, V&& v) {
  return v(m.rank, m.tensor);
}

struct WithPointer {
  const int* pointer = nullptr;
};
template <class V>
decltype(auto) visit_fields(WithPointer& m, V&& v) {
  return v(m.pointer);
}

struct WithHandles {
  std::vector<std::shared_ptr<int>> handles;
};
template <class V>
decltype(auto) visit_fields(WithHandles& m, V&& v) {
  return v(m.handles);
}

struct WithUnlistedField {
  Rank rank;
  at::Tensor tensor;
};
template <class V>
decltype(auto) visit_fields(WithUnlistedField& m, V&& v) {
  return v(m.rank);
}

TEST_CASE("a tensor, a pointer, a handle or a field left out would be noticed",
          "[actors][messages]") {
  STATIC_CHECK_FALSE(is_metadata<WithTensor>());
  STATIC_CHECK_FALSE(is_metadata<WithPointer>());
  STATIC_CHECK_FALSE(is_metadata<WithHandles>());
  STATIC_CHECK_FALSE(is_metadata<WithUnlistedField>());
}

TEST_CASE("every message has a name of its own on the wire, which stays what it is",
          "[actors][messages]") {
  const auto names = []<class... M>(std::tuple<M...>*) {
    return std::set<std::string_view>{kWireName<M>...};
  }(static_cast<AllMessageTypes*>(nullptr));
  CHECK(names.size() == std::tuple_size_v<AllMessageTypes>);
  CHECK((names ==
         std::set<std::string_view>{
             "stagecraft.PeerCut",       "stagecraft.AreYouThere",  "stagecraft.Here",
             "stagecraft.Abort",         "stagecraft.CauseOfEnd",   "stagecraft.CloseNetwork",
             "stagecraft.EndWorker",     "stagecraft.Hello",        "stagecraft.Join",
             "stagecraft.Joined",        "stagecraft.LoadPlan",     "stagecraft.LoadShape",
             "stagecraft.NetworkOpened", "stagecraft.OpenNetwork",  "stagecraft.Ready",
             "stagecraft.SendState",     "stagecraft.StartRank",    "stagecraft.StateListing",
             "stagecraft.StateTaken",    "stagecraft.Status",       "stagecraft.StatusReply",
             "stagecraft.StepOrder",     "stagecraft.StepReport",   "stagecraft.Submit",
             "stagecraft.TakeState",     "stagecraft.TimelineHere", "stagecraft.ShapeLoaded",
             "stagecraft.Welcome",       "stagecraft.WorkerEnded",  "stagecraft.StartActors",
             "stagecraft.ActorsStarted"}));
  CHECK(kWireName<StepOrder> == "stagecraft.StepOrder");
  CHECK(kWireName<StepReport> == "stagecraft.StepReport");
}

TEST_CASE("a report is as long for a thousand instructions as for one", "[actors][messages]") {
  ActorHost& host = ActorHost::of_this_process();
  const auto size_of = [&host](std::size_t instructions) {
    const at::Tensor timeline = pack_timeline(std::vector<InstructionTime>(instructions));
    StepReport report{.timeline_rows = timeline.size(0)};
    std::vector<char> bytes;
    caf::binary_serializer write(host.system(), bytes);
    REQUIRE_FALSE(write(report));
    return bytes.size();
  };
  CHECK(size_of(1) == size_of(1000));
}

template <class... Message>
std::size_t bytes_of(Message... messages) {
  std::vector<char> bytes;
  caf::binary_serializer write(ActorHost::of_this_process().system(), bytes);
  REQUIRE_FALSE((write(messages) || ...));
  return bytes.size();
}

TEST_CASE("a step of ten thousand cells is less than 64 KiB of messages for each of its ranks",
          "[actors][messages]") {
  constexpr std::size_t kCells = 10'000, kLimit = 64 * 1024;
  const std::size_t ranks = GENERATE(1U, 2U, 8U, 100U, 1000U);
  CAPTURE(ranks);
  StepReport report;  // of the rank with the loss: a forward and a backward per microbatch
  report.losses.resize(kCells / ranks / 2);
  // A rank is asked this often in a step of ten seconds in which it waits for every other rank.
  const auto questions =
      std::chrono::seconds(10) / std::max(kLookInterval, std::chrono::milliseconds(ranks));
  const StatusReply status{.waiting_for = std::vector<Rank>(ranks)};
  const StepOrder order{.parts = PartRuns(3)};  // unequal parts never number more
  CHECK(bytes_of(order, report) + static_cast<std::size_t>(questions) * bytes_of(Status{}, status) <
        kLimit);
  Error why(Errc::WorkerLost, std::string(4096, 'x'));  // chains of waits are never longer
  why.because(Error(Errc::WorkerFailed, std::string(4096, 'x')));
  CHECK(bytes_of(StepOrder{}, Abort{.reason = to_chain(why)}, StepReport{.error = to_chain(why)}) <
        kLimit);
}

TEST_CASE("a timeline survives being a tensor, in the reader's clock, and what is none is refused",
          "[actors][messages]") {
  const std::vector<InstructionTime> sent{
      {}, {.start = 5, .end = 9, .arrived = 7, .bytes = 64, .held = 128, .in_flight = 3}};
  const std::vector<InstructionTime> read = unpack_timeline(pack_timeline(sent), 2, 1000);
  REQUIRE(read.size() == 2);
  CHECK(read[0].arrived == 0);
  CHECK(read[1].start == 1005);
  CHECK(read[1].end == 1009);
  CHECK(read[1].arrived == 1007);
  CHECK(read[1].bytes == 64);
  CHECK(read[1].held == 128);
  CHECK(read[1].in_flight == 3);
  CHECK_THROWS_AS((void)unpack_timeline(pack_timeline(sent), 3, 0), Error);
  CHECK_THROWS_AS((void)unpack_timeline(pack_timeline(sent).to(at::kInt), 2, 0), Error);
  CHECK_THROWS_AS((void)unpack_timeline(pack_timeline(sent).t(), 6, 0), Error);
}

TEST_CASE("options travel whole, but for the functions of their own process (OP-1)",
          "[actors][messages]") {
  TrainerOptions options;
  // Sets every option.
  auto& [rate,
         groups,
         decay_on,
         clip,
         clip_value,
         average,
         master_weights,
         loss_scaling,
         keep,
         seed,
         threads,
         device,
         device_transport,
         device_reduce,
         memory_limit,
         dispatch,
         tells_values,
         tensors,
         record,
         mirror,
         run,
         outstanding,
         step,
         state,
         end,
         hook,
         look,
         decide,
         loss_weight] = options;
  hook = nullptr;
  look = nullptr;
  decide = nullptr;
  loss_weight = nullptr;
  const std::vector<const void*> traveling{&rate,
                                           &groups,
                                           &decay_on,
                                           &clip,
                                           &clip_value,
                                           &average,
                                           &master_weights,
                                           &loss_scaling,
                                           &keep,
                                           &seed,
                                           &threads,
                                           &device,
                                           &device_transport,
                                           &device_reduce,
                                           &memory_limit,
                                           &dispatch,
                                           &tells_values,
                                           &tensors,
                                           &record,
                                           &mirror,
                                           &run,
                                           &outstanding,
                                           &step,
                                           &state,
                                           &end};
  const auto listed =
      visit_fields(options, [](auto&... field) { return std::vector<const void*>{&field...}; });
  CHECK((listed == traveling));
}

TEST_CASE("a message survives being written to bytes and read back", "[actors][messages]") {
  StepReport sent{.rank = Rank(3),
                  .submission = Submission(17),
                  .committed = true,
                  .times = {.forward = 0.25,
                            .peak_bytes = 4096,
                            .memory = {.live = 1, .cached = 2, .peak = 3, .page_faults = 4}},
                  .losses = {{Microbatch(0), 0.5}, {Microbatch(1), 2.25}},
                  .gradient_norm = 1.5,
                  .timeline_rows = 2,
                  .error = to_chain(Error(Errc::WorkerFailed, "no").with({.task = "1B0"}))};
  ActorHost& host = ActorHost::of_this_process();
  std::vector<char> bytes;
  caf::binary_serializer write(host.system(), bytes);
  REQUIRE_FALSE(write(sent));
  StepReport read;
  caf::binary_deserializer reader(host.system(), bytes);
  REQUIRE_FALSE(reader(read));
  CHECK(read.rank == sent.rank);
  CHECK(read.submission == sent.submission);
  CHECK(read.committed);
  CHECK(read.times.forward == 0.25);
  CHECK(read.times.peak_bytes == 4096);
  CHECK(read.times.memory.live == 1);
  CHECK(read.times.memory.cached == 2);
  CHECK(read.times.memory.peak == 3);
  CHECK(read.times.memory.page_faults == 4);
  CHECK((read.losses == sent.losses));
  CHECK(read.gradient_norm == 1.5);
  CHECK(read.timeline_rows == 2);
  REQUIRE(read.error.size() == 1);
  CHECK(read.error[0].task == "1B0");
}

TEST_CASE("numbers of every kind keep their bits in a message", "[actors][messages]") {
  const double number = GENERATE(0.1,
                                 -0.0,
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::denorm_min());
  StepReport sent{.losses = {{Microbatch(0), number}},
                  .counts = {{"rows", {1.0, number}}},
                  .gradient_norm = number};
  ActorHost& host = ActorHost::of_this_process();
  std::vector<char> bytes;
  caf::binary_serializer write(host.system(), bytes);
  REQUIRE_FALSE(write(sent));
  StepReport read;
  caf::binary_deserializer reader(host.system(), bytes);
  REQUIRE_FALSE(reader(read));
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  CHECK(bits(read.losses.at(0).value) == bits(number));
  CHECK(bits(read.gradient_norm) == bits(number));
  REQUIRE(read.counts.size() == 1);
  CHECK(read.counts[0].name == "rows");
  REQUIRE(read.counts[0].numbers.size() == 2);
  CHECK(bits(read.counts[0].numbers[1]) == bits(number));
}

TEST_CASE("a listing gets name, shape and type of each tensor", "[actors][messages]") {
  StateListing listing;
  add_tensors(listing, {{"weight:a", at::empty({2, 3})}});
  add_tensors(listing, {{"buffer:count", at::empty({}, at::kLong)}});
  CHECK(listing.names == std::vector<std::string>{"weight:a", "buffer:count"});
  CHECK(listing.shapes == std::vector<std::vector<std::int64_t>>{{2, 3}, {}});
  CHECK(listing.types == std::vector<std::string>{"Float", "Long"});
}

}  // namespace
}  // namespace stagecraft
