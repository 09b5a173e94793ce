// SPDX-License-Identifier: Apache-2.0
/** The dialogs that change a lease, for every page that shows leases. */
export { ChangeDialog } from "./change.tsx";
export { EndNowDialog } from "./end-now.tsx";
export { ExtendDialog } from "./extend.tsx";
export { MergeDialog, ShrinkDialog, SplitDialog, SwapDialog } from "../surgery/surgery.tsx";
export { GiveDialog } from "../surgery/transfer.tsx";
