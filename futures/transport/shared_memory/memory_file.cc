#include "stagecraft/futures/transport/shared_memory/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <linux/magic.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Error unusable(const std::string& what) {
  return Error(Errc::TransportRefused, "shared memory: " + what);
}

/// Returns the limit of this process; nothing if there is none.
std::optional<std::int64_t> limit_of(int resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(limit.rlim_cur);
}

/// Works like fallocate(), and again after a signal.
bool allocate(const Descriptor& file, int mode, std::int64_t offset, std::int64_t bytes) {
  int failed = 0;
  do {
    failed = fallocate(file.number(), mode, offset, bytes);
  } while (failed != 0 && errno == EINTR);
  return failed == 0;
}

}  // namespace

std::int64_t MemoryFile::usual_limit() {
  constexpr std::int64_t kMost = std::int64_t{16} << 30U;
  const std::int64_t half = sysconf(_SC_PHYS_PAGES) / 2 * sysconf(_SC_PAGESIZE);
  return limit_of(RLIMIT_AS) ? 0 : std::min(half, kMost);
}

MemoryFile MemoryFile::make(std::int64_t bytes) {
  // The system would end the process by a signal for a larger file.
  const std::int64_t allowed =
      std::min(kFirstSlot + bytes, limit_of(RLIMIT_FSIZE).value_or(kFirstSlot + bytes));
  const std::int64_t size = allowed / kPage * kPage;
  if (size < kFirstSlot + kPage) {
    throw unusable(
        fmt::format("{} bytes were wanted, and the limit of file sizes is {}: raise "
                    "ulimit -f",
                    kFirstSlot + bytes,
                    allowed));
  }
  Descriptor file(memfd_create("stagecraft", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.number(), size) != 0 || !allocate(file, 0, 0, kFirstSlot) ||
      fcntl(file.number(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    throw unusable(fmt::format("cannot make {} bytes: {}", size, std::strerror(errno)));
  }
  return MemoryFile(std::move(file));
}

MemoryFile::MemoryFile(Descriptor file) : file_(std::move(file)) {
  struct stat facts {};
  struct statfs system {};
  const int seals = fcntl(file_.number(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file_.number(), &facts) != 0) {
    throw unusable("the file is not sealed, so it could shrink");
  }
  if (fstatfs(file_.number(), &system) != 0 || system.f_type != TMPFS_MAGIC) {
    throw unusable("the file does not have pages of usual memory");
  }
  if (facts.st_size < kFirstSlot || facts.st_size > kFirstSlot + kLargest) {
    throw unusable(fmt::format("the file has {} bytes, expected {} to {}",
                               facts.st_size,
                               kFirstSlot,
                               kFirstSlot + kLargest));
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* const data = mmap(nullptr,
                          size,
                          PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE,
                          file_.number(),
                          /*offset=*/0);
  if (data == MAP_FAILED) {
    throw unusable(fmt::format("cannot map {} bytes: {}", size, std::strerror(errno)));
  }
  mapped_ = {static_cast<std::byte*>(data), size};
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : file_(std::move(other.file_)), mapped_(std::exchange(other.mapped_, {})) {}

MemoryFile::~MemoryFile() {
  if (!mapped_.empty()) {
    munmap(mapped_.data(), mapped_.size());
  }
}

MemoryFile::State& MemoryFile::state(std::uint32_t slot) const {
  // The system has zeroed the memory, and SlotState::Free is 0.
  return reinterpret_cast<State*>(mapped_.data())[slot];
}

bool MemoryFile::take_memory(std::int64_t offset, std::int64_t bytes) const {
  if (!allocate(file_, 0, offset, bytes)) {
    return false;
  }
  see_memory(offset, bytes);
  return true;
}

void MemoryFile::see_memory(std::int64_t offset, std::int64_t bytes) const {
  // An older kernel does not know the advice; then each page faults once.
  static_cast<void>(
      madvise(at(offset), static_cast<std::size_t>(std::min(bytes, kSeen)), MADV_POPULATE_WRITE));
}

void MemoryFile::give_memory_back(std::int64_t offset, std::int64_t bytes) const {
  static_cast<void>(allocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes));
}

}  // namespace stagecraft
