#include "loader_workers.h"

#include <ATen/Parallel.h>
#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {

namespace {

// The signals that ask a run to end go to the main thread, which polls for them. Those of a crash stay open.
class AsyncSignalsBlocked {
 public:
  AsyncSignalsBlocked() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH}) {
      sigaddset(&blocked, signal);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~AsyncSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

LoaderWorkers::LoaderWorkers(int64_t threads, int64_t ahead, std::function<Batch(int64_t)> make)
    : make_(std::move(make)), slots_(static_cast<std::size_t>(ahead)) {
  try {
    start_threads(threads);
  } catch (const std::system_error& error) {
    join_threads();
    throw Error(cat("only ", threads_.size(), " of ", threads, " loader threads could be started (", error.what(),
                    "): lower NUM_WORKERS, or raise the limit on processes (ulimit -u)"));
  }
}

LoaderWorkers::~LoaderWorkers() { join_threads(); }

void LoaderWorkers::start_threads(int64_t count) {
  const AsyncSignalsBlocked blocked;
  // A thread that runs tensor operations would open an OpenMP team of its own and take the cores from
  // training, so each sets its number to 1. LibTorch keeps that number as the default of threads to come,
  // and MKL as the number of all threads: it has to be put back from here, once no worker will read it.
  const int own_threads = at::get_num_threads();
  threads_.reserve(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) threads_.emplace_back(&LoaderWorkers::work, this);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return started_ == count; });
  at::set_num_threads(own_threads);
}

void LoaderWorkers::join_threads() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LoaderWorkers::begin(int64_t first, int64_t end) {
  {
    const std::lock_guard lock(mutex_);
    next_to_make_ = next_to_take_ = first;
    end_ = end;
  }
  work_.notify_all();
}

bool LoaderWorkers::wait(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  const Slot& next = slots_[static_cast<std::size_t>(next_to_take_) % slots_.size()];
  return done_.wait_for(lock, at_most, [&] { return next.ready; });
}

Batch LoaderWorkers::take() {
  Slot slot;
  {
    std::unique_lock lock(mutex_);
    Slot& next = slots_[static_cast<std::size_t>(next_to_take_) % slots_.size()];
    done_.wait(lock, [&] { return next.ready; });
    slot = std::exchange(next, Slot());
    ++next_to_take_;
  }
  work_.notify_one();
  if (slot.failure) std::rethrow_exception(slot.failure);
  return std::move(slot.batch);
}

void LoaderWorkers::stop() {
  std::unique_lock lock(mutex_);
  end_ = next_to_make_;
  done_.wait(lock, [&] { return in_hand_ == 0; });
  for (Slot& slot : slots_) slot = Slot();
}

void LoaderWorkers::work() {
  pthread_setname_np(pthread_self(), "gantry-loader");
  std::unique_lock lock(mutex_);
  at::set_num_threads(1);
  at::get_num_threads();  // LibTorch's lazy start of this thread must happen while the default is still 1
  ++started_;
  done_.notify_all();
  for (;;) {
    work_.wait(lock, [&] {
      return quit_ || (next_to_make_ < end_ && next_to_make_ - next_to_take_ < static_cast<int64_t>(slots_.size()));
    });
    if (quit_) return;
    const int64_t index = next_to_make_++;
    ++in_hand_;
    lock.unlock();
    Slot slot;
    slot.ready = true;
    try {
      slot.batch = make_(index);
    } catch (...) {
      slot.failure = std::current_exception();
    }
    lock.lock();
    --in_hand_;
    slots_[static_cast<std::size_t>(index) % slots_.size()] = std::move(slot);
    done_.notify_all();
  }
}

}  // namespace gantry
